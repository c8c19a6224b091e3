import OpenAI from 'openai'
import assert from 'node:assert/strict'

const client = new OpenAI({ baseURL: process.env.URL + '/v1', apiKey: process.env.KEY ?? 'none', maxRetries: 0 })

// A function.
const tools = [{ type: 'function', name: 'weather', description: 'The weather', strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false } }]
const asks = client.responses.stream({ model: 'default', conversation: 'node-tools', input: '/call weather {"city":"Rome"}', tools })
const asked = await asks.finalResponse()
const [call] = asked.output
assert.equal(asked.status, 'completed')
assert.deepEqual([call.type, call.name, call.arguments], ['function_call', 'weather', '{"city":"Rome"}'])
const told = await client.responses.create({ model: 'default', previous_response_id: asked.id, tools,
  input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sunny' }] })
assert.match(told.output_text, /weather returned: "?sunny/)

// Items.
const items = []
for await (const item of client.responses.inputItems.list(told.id, { order: 'asc' })) items.push(item)
assert.deepEqual(items.map(i => i.type), ['message', 'function_call', 'function_call_output'])
const all = []
for await (const item of client.conversations.items.list('node-tools', { order: 'asc', limit: 1 })) all.push(item)
assert.deepEqual(all.map(i => i.type), ['message', 'function_call', 'function_call_output', 'message'])

// A tool of the worker, which needs no client.
const own = [{ type: 'mcp', server_label: 'worker', allowed_tools: ['lookup'], require_approval: 'never' }]
const runner = client.responses.stream({ model: 'default', input: '/call lookup {"word":"hello"}', tools: own })
const kinds = []
for await (const event of runner) kinds.push(event.type)
const looked = await runner.finalResponse()
assert.deepEqual(looked.output.map(i => i.type), ['mcp_call', 'message'])
assert.equal(looked.output[0].output, 'the meaning of hello')
assert.equal(looked.output[0].name, 'lookup')
assert(kinds.includes('response.mcp_call.completed'))
assert.match(looked.output_text, /the meaning of hello/)

// With an approval.
const careful = [{ ...own[0], require_approval: 'always' }]
const waiting = await client.responses.create({ model: 'default', input: '/call lookup {"word":"door"}', tools: careful })
const request = waiting.output.at(-1)
assert.deepEqual([request.type, request.name, request.arguments], ['mcp_approval_request', 'lookup', '{"word":"door"}'])
const approved = await client.responses.create({ model: 'default', previous_response_id: waiting.id,
  input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve: true }] })
assert.deepEqual(approved.output.map(i => i.type), ['mcp_call', 'message'])
assert.match(approved.output_text, /the meaning of door/)
const again = await client.responses.create({ model: 'default', input: '/call lookup {"word":"door"}', tools: careful })
const denied = await client.responses.create({ model: 'default', previous_response_id: again.id,
  input: [{ type: 'mcp_approval_response', approval_request_id: again.output.at(-1).id, approve: false, reason: 'Not now' }] })
assert.match(denied.output_text, /Not now/)
console.log('ok')
