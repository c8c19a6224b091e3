// Package offline is the model of a worker that was given no API key; a small
// OpenAI-compatible server that repeats what it was told, so that everything
// around a model can be seen at work.
//
//	server := &http.Server{Handler: offline.Handler(offline.Options{})}
//	// GET  /v1/models
//	// POST /v1/chat/completions, with "stream": true or without
//
// Its answer depends on the request alone. It shows what a model is shown: how
// many messages, which attachments, and whether the answer before was cut off.
// "count to 300" makes it count, which is long enough to be interrupted.
package offline
