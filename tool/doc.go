// Package tool makes Go functions available to models.
//
//	type Place struct {
//		City string `json:"city" jsonschema:"the name of a city"`
//	}
//
//	weather, err := tool.New("weather", "Get the current weather of a city",
//		func(ctx context.Context, in Place) (Report, error) { … })
//	set, err := tool.NewSet(tool.Options{Store: store}, weather)
//	worker := contexts.NewWorker(temporal, contexts.Options{Tools: set, …})
//
// A context uses the tools that it names in an event.SetTools. [New] derives the JSON Schema of
// the arguments from the input type: each field is required unless it has omitempty or omitzero,
// and the struct tag jsonschema describes it.
//
// Each call is a Temporal activity. [CallID] is unique in the context and the same for all
// attempts of a call, so functions with effects pass it on as an idempotency key. A tool that is
// safe to repeat has the option [Idempotent]; a call of any other tool is never repeated.
//
// Package tool/builtin has tools that need no code.
//
// Guarantees:
//   - A function receives only arguments that match the schema.
//   - An error, a panic or a timeout of a function becomes an error result for the model. It
//     ends neither the request nor the worker. [Timeout] cancels the context of the function; a
//     function that ignores it is abandoned.
//   - A result is bounded. The whole text of a larger one is in the blob store; the model
//     receives its beginning and end, and reads the rest with the tool [ReadResult].
//   - The order of the tools that models receive depends only on the event and on the names of
//     the tools.
package tool
