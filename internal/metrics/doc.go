// Package metrics defines the instruments of the worker and the gateway.
//
//	m := metrics.New(provider) // nil: the instruments record nothing
//	m.Requests.Add(1, "openai", "gpt-4o", "completed")
//	m.FirstToken.Observe(time.Since(sent).Seconds(), "openai", "gpt-4o")
//
// Label values follow the order of the labels in the definition. They are bounded: no label is the
// name of a context or an id. Of the names that events and operators choose, such as models, each
// label has up to [MaxNames]; further ones are reported as [Other].
package metrics
