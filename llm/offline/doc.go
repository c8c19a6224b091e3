// Package offline is a small OpenAI-compatible server that describes the request it got, for
// workers without an API key.
//
//	server := &http.Server{Handler: offline.Handler(offline.Options{})}
//	// GET  /v1/models
//	// POST /v1/chat/completions, with or without "stream": true
//
// The answer depends only on the request: it reports the number of user messages, the attachments, and
// whether the previous answer was interrupted. "count to 300" makes it count, which takes long
// enough to be interrupted. "/call fetch {"url":"https://example.com"}" makes it call the tool
// fetch, if the request offers it; the next answer quotes the result.
package offline
