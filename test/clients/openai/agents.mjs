import { Agent, Runner, tool, OpenAIProvider, setTracingDisabled } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import assert from 'node:assert/strict'

setTracingDisabled(true)
const client = new OpenAI({ baseURL: process.env.URL + '/v1', apiKey: process.env.KEY ?? 'none', maxRetries: 0 })
const calls = []
const weather = tool({
  name: 'weather', description: 'The weather of a city', parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => { calls.push(city); return 'sunny in ' + city },
})
const agent = new Agent({ name: 'Forecaster', instructions: 'Be brief', model: 'default', tools: [weather] })
const question = '/call weather {"city":"Rome"}'

// The loop of the agent runs in this program; each form of memory works.
for (const useResponses of [true, false]) {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses }) })
  calls.length = 0
  const plain = await runner.run(agent, question)
  assert.deepEqual(calls, ['Rome'])
  assert.match(plain.finalOutput, /weather returned: "?sunny in Rome/)
  const streamed = await runner.run(agent, question, { stream: true })
  let text = ''
  for await (const piece of streamed.toTextStream()) text += piece
  await streamed.completed
  assert.equal(text, streamed.finalOutput)
  assert.match(text, /sunny in Rome/)
  if (!useResponses) continue
  const durable = await runner.run(agent, question, { conversationId: 'agents-' + Date.now() })
  assert.match(durable.finalOutput, /sunny in Rome/)
  const chained = await runner.run(agent, 'And now?', { previousResponseId: durable.lastResponseId })
  assert.match(chained.finalOutput, /2nd message: "And now\?"/)
  const again = await runner.run(agent, question, { conversationId: 'agents-stream-' + Date.now(), stream: true })
  for await (const _ of again) ;
  assert.match(again.finalOutput, /sunny in Rome/)
}
console.log('ok')
