// Package gateway serves contexts over HTTP, to browsers and to programs in any
// language.
//
//	client, err := session.Dial(ctx, session.Config{})
//	g := gateway.New(client, gateway.Options{})
//	listener, err := net.Listen("tcp", "127.0.0.1:8080")
//	err = g.Serve(ctx, listener) // until ctx is done
//
// What it serves is in openapi.json (OpenAPI 3.1), which it serves, too:
//
//	POST   /contexts/{name}/events      sends an event or an array of them
//	GET    /contexts/{name}/events      the log, page by page or as a stream
//	GET    /contexts/{name}/events/{id}/attachment  the file that an event brought
//	GET    /contexts/{name}/state       what the context is doing
//	GET    /contexts/{name}/transcript  the document that a page shows, or a stream of JSON Patches to it
//	POST   /contexts/{name}/interrupt   stops the running answer
//	DELETE /contexts/{name}             ends the session
//	GET    /contexts                    which contexts there are
//	GET    /limits                      how long files may be
//	GET    /healthz, /readyz, /openapi.json
//
// The way through the code: guard.go decides who is let in, routes.go what is
// served, send.go, contexts.go and attachment.go hold the short requests, events.go and
// transcript.go the long ones, problem.go turns an error into an answer, in one
// place. The list that all pages ask for is kept by listing.go. What is streamed
// comes out of a room (room.go), written by sse.go.
//
// # Rooms
//
// All viewers of a context share a room, which follows the context once. It keeps
// what is newest: the transcript, the newest events, the answer so far. It has no
// queues: a viewer asks it for what is new when the viewer's connection can take
// more. So a slow viewer gets fewer and larger pieces, holds up nobody, and costs
// no memory. A room ends some seconds after its last viewer has left.
//
// Only a stream opens a room for a context that does not exist. The room looks for the
// context once a second and ends with its last stream. All other requests for an unknown
// name share one lookup per second (known.go).
//
// # Guarantees
//
//   - A stream of events has each recorded event once and in order, across
//     reconnections with Last-Event-ID. Deltas stand between them without an id.
//   - The patches of a transcript, applied in order, make of the document that
//     came before them the document of the newest version.
//   - Whoever goes away stops nothing: an answer ends by itself, by new input or by
//     an interrupt.
//   - A request with an Idempotency-Key may be repeated: its events are in the log
//     once, among the newest thousand. With another body it is refused.
//   - What somebody attached is shown by browsers as an image or kept as a file; it
//     runs nothing.
//   - No error tells a client, and no log line tells an operator, a secret.
//
// # Who is let in
//
// The gateway has no login: whoever reaches its address can read and write all
// contexts of the namespace. It is made for the loopback address, or to stand
// behind a proxy that knows who is who. What an address may ask for is bounded; behind
// a proxy that Options.Proxies has, it is the address of the proxy's client.
//
// A page of another site that is open in the same browser is kept out. A site whose
// name leads to this address (DNS rebinding) sends its own name as Host, and only
// localhost, IP addresses and Options.Hosts are served. A form or script of another
// site says so by Sec-Fetch-Site or Origin, and may not write. There are no CORS
// headers, so it may not read either.
package gateway
