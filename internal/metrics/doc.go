// Package metrics defines the instruments of the worker and the gateway.
//
//	m := metrics.New(provider) // nil: the instruments record nothing
//	m.Requests.Add(1, "openai", "gpt-4o", "completed")
//	m.FirstToken.Observe(time.Since(sent).Seconds(), "openai", "gpt-4o")
//
// Label values follow the order of the labels in the definition. They are bounded: no label value is
// the name of a context or an id, and each label has at most [MaxNames] values. Further values, for
// example models that events name, are reported as [Other].
package metrics
