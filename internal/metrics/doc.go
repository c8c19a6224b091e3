// Package metrics defines the instruments of the worker and the gateway.
//
//	m := metrics.New(provider) // nil: the instruments record nothing
//	m.Requests.Add(1, "openai", "gpt-4o", "completed")
//	m.FirstToken.Observe(time.Since(sent).Seconds(), "openai", "gpt-4o")
//
// Label values follow the order of the labels in the definition. No label value is the name of a context or
// an id. The OpenTelemetry SDK bounds the series of an instrument: beyond 2,000, observations have the label
// otel_metric_overflow instead of their own.
package metrics
