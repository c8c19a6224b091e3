import OpenAI from 'openai'
import assert from 'node:assert/strict'

const client = new OpenAI({ baseURL: process.env.URL + '/v1', apiKey: process.env.KEY ?? 'none', maxRetries: 0 })
const model = 'default'

// Stateless: the list is the conversation.
const plain = await client.chat.completions.create({ model, messages: [
  { role: 'system', content: 'Be brief' }, { role: 'user', content: 'One' }, { role: 'assistant', content: 'Two' }, { role: 'user', content: 'Three' } ] })
assert.match(plain.choices[0].message.content, /2nd message: "Three"/)
assert.equal(plain.choices[0].finish_reason, 'stop')
assert(plain.usage.total_tokens > 0)

// Streamed, with the accumulator of the package.
const runner = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'count to 40' }], stream_options: { include_usage: true } })
let text = ''
runner.on('content', delta => { text += delta })
const final = await runner.finalChatCompletion()
assert.equal(final.choices[0].message.content, text)
assert.match(text, /Counting to 40: 1 2 .* 40\./)
assert((await runner.totalUsage()).completion_tokens > 0)

// A function, stateless.
const tools = [{ type: 'function', function: { name: 'weather', description: 'The weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }]
const messages = [{ role: 'user', content: '/call weather {"city":"Rome"}' }]
const asked = await client.chat.completions.create({ model, messages, tools })
assert.equal(asked.choices[0].finish_reason, 'tool_calls')
const [call] = asked.choices[0].message.tool_calls
assert.deepEqual([call.function.name, call.function.arguments], ['weather', '{"city":"Rome"}'])
const told = await client.chat.completions.create({ model, tools, messages: [...messages, asked.choices[0].message, { role: 'tool', tool_call_id: call.id, content: 'sunny' }] })
assert.match(told.choices[0].message.content, /weather returned: "?sunny/)

// Durable: the context has the conversation, and the newest message is the input.
const metadata = { context: 'node-chat-' + Date.now() }
const history = [{ role: 'user', content: '/call weather {"city":"Oslo"}' }]
const step = async () => {
  const stream = client.chat.completions.stream({ model, messages: history, metadata, tools })
  const done = await stream.finalChatCompletion()
  history.push(done.choices[0].message)
  return done.choices[0]
}
const calls = (await step()).message.tool_calls
assert.equal(calls[0].function.name, 'weather')
history.push({ role: 'tool', tool_call_id: calls[0].id, content: 'rain' })
assert.match((await step()).message.content, /weather returned: "?rain/)
history.push({ role: 'user', content: 'And now?' })
assert.match((await step()).message.content, /2nd message: "And now\?"/)
const alone = await client.chat.completions.create({ model, metadata, messages: [{ role: 'user', content: 'Alone' }] })
assert.match(alone.choices[0].message.content, /3rd message: "Alone"/)

const fails = async (what, status, part) => {
  const error = await what.then(() => assert.fail('no error'), e => e)
  assert(error instanceof OpenAI.APIError, String(error))
  assert.equal(error.status, status, error.message)
  assert.match(error.message, part)
}
history.push({ role: 'user', content: 'Next' })
await fails(client.chat.completions.create({ model, metadata, messages: history }), 400, /contradicts the context/)
await fails(client.chat.completions.create({ model, messages: history, n: 2 }), 400, /n 2 is not supported/)
await fails(client.chat.completions.create({ model, messages: history, logit_bias: { 7: 1 } }), 400, /logit_bias is not supported/)
await fails(client.chat.completions.create({ model, messages: [] }), 400, /no message/)
assert.deepEqual((await client.models.list()).data.map(m => m.id), ['default'])
assert.equal((await client.models.retrieve('openai/gpt-5')).id, 'openai/gpt-5')
console.log('ok')
