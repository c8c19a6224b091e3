// Package openai serves contexts to clients of OpenAI's API: responses, conversations and chat completions.
//
//	g := gateway.New(c, gateway.Options{Protocols: []gateway.Protocol{openai.Protocol()}}) // at /v1/
//
// A conversation is a context. A response is a part of its log: from its trigger, which is the newest event of the input, to
// the end of the request that answers it, or until only clients can continue the request. Ids name the context and the
// trigger, and the number of a streamed event follows from the log and from the offset in the text. Nothing is stored
// for them, so any gateway serves any response, and resumes any stream after any event.
//
// docs/clients.md lists the fields. A field that is not supported is an error, unless it changes no answer.
package openai
