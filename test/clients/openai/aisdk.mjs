import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, streamText, tool } from 'ai'
import { z } from 'zod'
import assert from 'node:assert/strict'

let sent
const spy = (url, init) => { sent = init.body; return fetch(url, init) }
const openai = createOpenAI({ baseURL: process.env.URL + '/v1', apiKey: process.env.KEY ?? 'none', fetch: spy })
const model = openai('default')

// The messages are the chat. Those of earlier answers are references to their items.
const messages = []
const say = async content => {
  messages.push({ role: 'user', content })
  const answer = await generateText({ model, messages, maxRetries: 0 })
  messages.push(...answer.response.messages)
  return answer.text
}
assert.match(await say('One'), /1st message: "One"/)
assert.match(await say('Two'), /2nd message: "Two"/)
assert.match(await say('Three'), /3rd message: "Three"/)
assert.equal(sent.match(/item_reference/g).length, 2)
messages.push({ role: 'user', content: 'Four' })
let text = ''
const streamed = streamText({ model, messages, maxRetries: 0, onError: ({ error }) => { throw error } })
for await (const piece of streamed.textStream) text += piece
assert.match(text, /4th message: "Four"/)

// With tools, also after their results.
const weather = tool({ description: 'The weather', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => 'sunny in ' + city })
const asked = await generateText({ model, tools: { weather }, stopWhen: isStepCount(3), maxRetries: 0,
  messages: [...messages.slice(0, 2), { role: 'user', content: '/call weather {"city":"Rome"}' }] })
assert.match(asked.text, /sunny in Rome/)
const after = await generateText({ model, tools: { weather }, maxRetries: 0,
  messages: [...messages.slice(0, 2), { role: 'user', content: 'The weather?' }, ...asked.response.messages, { role: 'user', content: 'Thanks' }] })
assert.match(after.text, /Thanks/)

// One context: the newest message only.
const first = await generateText({ model, prompt: 'Hello', maxRetries: 0 })
const { responseId } = first.providerMetadata.openai
const next = await generateText({ model, prompt: 'Again', maxRetries: 0, providerOptions: { openai: { previousResponseId: responseId } } })
assert.match(next.text, /2nd message: "Again"/)
const named = 'aisdk-' + Date.now()
for (const prompt of ['Alpha', 'Beta']) {
  const answer = await generateText({ model, prompt, maxRetries: 0, providerOptions: { openai: { conversation: named } } })
  assert.match(answer.text, new RegExp(prompt))
}
console.log('ok')
