// Package tool makes Go functions available to models.
//
//	type Place struct {
//		City string `json:"city" jsonschema:"the name of a city"`
//	}
//
//	weather, err := tool.New("weather", "Get the current weather of a city",
//		func(ctx context.Context, in Place) (Report, error) { … })
//	set, err := tool.NewSet(tool.Options{}, weather)
//	worker, err := connection.NewWorker(contexts.Options{Tools: set, …})
//
// [New] derives the JSON Schema of the arguments from the input type: each field is required unless
// it is a pointer or has omitempty or omitzero, and the struct tag jsonschema describes it. A
// context uses the tools that it names in an event.SetTools. Package tool/builtin has tools that
// need no code.
//
// Each call is a Temporal activity. Functions with side effects use [CallID] with [ContextName] as an
// idempotency key. Only calls of [Idempotent] tools are repeated, except that a reset of the workflow
// repeats all calls that were running at the reset point. Guarantees:
//   - A function receives only arguments that match the schema.
//   - An error, a panic or a timeout of a function is an error result for the model. It ends
//     neither the request nor the worker. A function that ignores the end of its context is
//     abandoned.
//   - The blob store receives the whole text of a result above [MaxResult]. The model
//     receives its beginning and end, and reads the rest with the tool [ReadResult]. A text above 16 MiB
//     is an error result.
//   - Models receive the tools in an order that depends only on the event.SetTools of the context and on
//     the names of the tools.
package tool
