// Package activities is everything that a context does outside of its
// deterministic workflow. [Activities.Generate] is the model call; the others
// are small:
//
//	Generate  asks the model, in as many attempts as the context allows
//	Open      decides how a run works, and restores the earlier sessions
//	Archive   writes the log of a run to the archive
//	Stop      hands the wish to stop a request to the worker that makes it
//
// Generate is given a reference and never the conversation, so that a history
// does not grow with it. It takes the conversation from [SessionCache], which the
// workflow fills as it goes, and asks the workflow by query when that runs in
// another process.
package activities
