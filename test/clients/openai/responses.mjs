import OpenAI from 'openai'
import assert from 'node:assert/strict'

const client = new OpenAI({ baseURL: process.env.URL + '/v1', apiKey: process.env.KEY ?? 'none', maxRetries: 0 })
const other = new OpenAI({ baseURL: process.env.OTHER_URL + '/v1', apiKey: process.env.KEY ?? 'none', maxRetries: 0 })

// Create, continue, retrieve, fork.
const first = await client.responses.create({ model: 'default', input: 'Hello', metadata: { purpose: 'test' } })
assert.equal(first.status, 'completed')
assert.match(first.output_text, /1st message: "Hello"/)
assert.deepEqual(first.metadata, { purpose: 'test' })
const second = await client.responses.create({ model: 'default', input: 'Again', previous_response_id: first.id })
assert.match(second.output_text, /2nd message: "Again"/)
assert.equal(second.conversation.id, first.conversation.id)
const forked = await client.responses.create({ model: 'default', input: 'Otherwise', previous_response_id: first.id })
assert.match(forked.output_text, /2nd message: "Otherwise"/)
assert.notEqual(forked.conversation.id, first.conversation.id)
const retrieved = await client.responses.retrieve(second.id)
assert.deepEqual(retrieved.output, second.output)
assert.deepEqual(retrieved.usage, second.usage)
assert.equal(retrieved.previous_response_id, first.id)

// Stream, with the accumulator of the package.
const runner = client.responses.stream({ model: 'default', conversation: 'node-stream', input: 'count to 40' })
const events = []
for await (const event of runner) events.push(event)
const final = await runner.finalResponse()
assert.match(final.output_text, /Counting to 40: 1 2 3 .* 40\./)
const deltas = events.filter(e => e.type === 'response.output_text.delta')
assert.equal(deltas.map(e => e.delta).join(''), final.output_text)
for (let i = 1; i < events.length; i++) assert(events[i].sequence_number > events[i - 1].sequence_number)
assert.deepEqual([...new Set(events.map(e => e.type))], ['response.created', 'response.in_progress', 'response.output_item.added',
  'response.content_part.added', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done',
  'response.output_item.done', 'response.completed'])

// Resume a running answer in the middle, at another gateway.
const begun = await client.responses.create({ model: 'default', conversation: 'node-background', input: 'count to 100', background: true })
assert.match(begun.status, /queued|in_progress/)
let text = '', after = -1
for await (const event of await client.responses.retrieve(begun.id, { stream: true })) {
  after = event.sequence_number
  if (event.type === 'response.output_text.delta') text += event.delta
  if (text.length > 150) break
}
assert(text.length < 350, 'the answer is still running')
let last
for await (const event of await other.responses.retrieve(begun.id, { stream: true, starting_after: after })) {
  assert(event.sequence_number > after)
  if (event.type === 'response.output_text.delta') text += event.delta
  last = event
}
assert.equal(last.type, 'response.completed')
assert.equal(text, last.response.output[0].content[0].text)
const replay = client.responses.stream({ response_id: begun.id, starting_after: after })
assert.equal((await replay.finalResponse()).output_text, text)

// Cancel.
const long = await client.responses.create({ model: 'default', conversation: 'node-cancel', input: 'count to 300', background: true })
for await (const event of await client.responses.retrieve(long.id, { stream: true })) if (event.type === 'response.output_text.delta') break
const cancelled = await client.responses.cancel(long.id)
assert.equal(cancelled.status, 'cancelled')
assert.equal(cancelled.output[0].status, 'incomplete')
assert.equal((await client.responses.cancel(long.id)).status, 'cancelled')

// What is not to be stored is deleted.
const secret = await client.responses.create({ model: 'default', input: 'Hello', store: false })
assert.match(secret.output_text, /Hello/)
for (;;) {
  const gone = await client.responses.retrieve(secret.id).then(() => false, e => e.status === 404)
  if (gone) break
  await new Promise(resolve => setTimeout(resolve, 100))
}

// Settings and files.
const settled = await client.responses.create({ model: 'default', input: [{ role: 'developer', content: 'Be brief' }, { role: 'user', content: [
  { type: 'input_text', text: 'What is this?' }, { type: 'input_image', image_url: 'data:image/png;base64,' + 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' }] }],
  temperature: 0, max_output_tokens: 500, reasoning: { effort: 'low', summary: 'auto' }, user: 'u-1', service_tier: 'auto' })
assert.match(settled.output_text, /It came with .*image/)
assert.equal((await client.responses.inputItems.list(settled.id)).data[0].content[0].type, 'input_image')

// Errors.
const fails = async (what, status, part) => {
  const error = await what.then(() => assert.fail('no error'), e => e)
  assert(error instanceof OpenAI.APIError, String(error))
  assert.equal(error.status, status, error.message)
  assert.match(error.message, part)
}
await fails(client.responses.create({ model: 'default', input: 'x', prompt: { id: 'p' } }), 400, /prompt is not supported/)
await fails(client.responses.create({ model: 'default', input: 7 }), 400, /input: want a text/)
await fails(client.responses.create({ model: 'default', input: 'x', temperature: 'hot' }), 400, /temperature has the wrong type/)
await fails(client.responses.create({ model: 'default', input: 'x', temperature: 3 }), 400, /temperature/)
await fails(client.responses.create({ model: 'default', input: 'x', tools: [{ type: 'web_search' }] }), 400, /web_search/)
await fails(client.responses.retrieve('resp_nothing'), 404, /not found/)
await fails(client.responses.retrieve('resp_nothing_0007'), 404, /not found/)
await fails(client.responses.retrieve(begun.id, { stream: true, starting_after: 2 ** 50 }), 400, /after the newest/)
await fails(client.responses.create({ model: 'default', input: [{ type: 'function_call_output', call_id: 'none', output: 'x' }], conversation: 'node-stream' }), 400, /no tool call/)
await fails(client.responses.create({ model: 'default', input: 'x', previous_response_id: 'resp_demo_9999' }), 404, /not found/)
await fails(client.responses.create({ model: 'default', input: 'x', previous_response_id: first.id, conversation: 'demo' }), 400, /exclude each other/)
await fails(client.responses.create({ model: 'default', input: 'x', conversation: '../demo' }), 400, /a name has 1-128/)
await fails(client.responses.inputItems.list(first.id, { limit: 0 }), 400, /limit/)
await fails(client.conversations.retrieve('conv-nothing'), 404, /Context not found/)
assert.match((await client.responses.create({ model: 'default', input: 'Go on', conversation: 'node-stream' })).output_text, /Go on/)

// A request repeated with an Idempotency-Key sends nothing again.
const keyed = async (key, body) => (await client.responses.create({ model: 'default', ...body }, { headers: { 'Idempotency-Key': key } }))
const twice = async (key, body) => {
  const one = await keyed(key, body), other = await keyed(key, body)
  assert.deepEqual(one, other)
  return one
}
const tools = [{ type: 'function', name: 'weather', parameters: { type: 'object', properties: {} }, strict: null }]
const once = await twice('alone', { input: '/call weather {}', instructions: 'Be brief', tools })
await twice('result', { previous_response_id: once.id, input: [{ type: 'function_call_output', call_id: once.output[0].call_id, output: 'sunny' }] })
await twice('fork', { previous_response_id: once.id, input: 'Never mind' })
await fails(keyed('alone', { input: 'Other' }), 422, /used for other/)
console.log('ok')
