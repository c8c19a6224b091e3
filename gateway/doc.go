// Package gateway serves contexts over HTTP, to browsers and to programs in any language.
//
//	c, err := client.Dial(ctx, client.Config{})
//	g := gateway.New(c, gateway.Options{})
//	listener, err := net.Listen("tcp", "127.0.0.1:8080")
//	err = g.Serve(ctx, listener) // until ctx is done
//
// The gateway also serves openapi.json, which describes the API (OpenAPI 3.1). `go test ./gateway -update`
// generates it from the routes and the types.
//
// # Rooms
//
// All viewers of a context share a room, which follows the context once and holds the transcript,
// the newest events and the text of the running answer. Changes are coalesced: when its connection
// is writable, each viewer requests the changes since its position. A slow viewer therefore
// receives fewer and larger updates, and does not delay others. A room ends [Options.Linger] after
// its last viewer has left.
//
// A stream may wait for a context that does not exist. Its room looks the context up once per
// second and ends with its last stream. A message makes no lookup, because it creates
// the context. All other requests for an unknown name share one lookup per second.
//
// # Guarantees
//
//   - A stream of events delivers each recorded event once and in order, across reconnections
//     with Last-Event-ID. Deltas are interleaved and have no id.
//   - The patches of a transcript, applied in order to an earlier document, produce the newest.
//   - A received write completes, and a running answer continues, even if the client disconnects.
//   - A request with an Idempotency-Key can be repeated: its events are deduplicated among the
//     newest thousand, and a fork is created once. The same key with another body is rejected.
//   - Browsers display images, play audio and download other attachments, and run no code in them.
//   - Errors and log lines contain no secrets.
//
// # Security
//
// Without Options.Auth, anyone who can reach the address of the gateway can read and write all contexts without a tenant.
// Bind it to the loopback address. With Options.Auth (package auth has tokens, JWTs, proxies and sessions), the roles of a
// client apply to the contexts of its tenant. Responses about all others are those about unknown names. Its approvals name
// its subject. A share link admits to the reads of one context, see route.isShared.
//
// Rates and streams are limited per tenant and per client: an IPv4 address or the /64 network of an IPv6 address; behind
// one of Options.Proxies, that of the proxy's client. Options also limits what a tenant stores.
//
// Other sites in the same browser have no access. Only localhost, IP addresses and Options.Hosts
// are accepted as Host, against DNS rebinding. Writes from another origin are recognized
// by Sec-Fetch-Site and Origin, and rejected, with or without the cookie of a session. Reads from there fail because the gateway sends no CORS
// headers.
package gateway
