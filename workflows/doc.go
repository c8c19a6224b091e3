// Package workflows is the shell around the session fold: the one workflow of a
// context, which receives, steps, performs and records.
//
//	signal ──> inbox ──> reducer.Step ──> record (SideEffect)
//	             ▲            │                  then
//	  result of Generate      └──> effects ──> start or stop Generate
//
// [Context] decides nothing; every decision is in [reducer.Step], which is pure
// and so the same in every replay. What the workflow adds is order and
// durability:
//   - Signals are taken in the order of the history, all that are there before
//     anything is done about one, and raw: what cannot be read becomes an
//     InputRejectedEvent and never a failed workflow task.
//   - Events are recorded once per turn of the loop by SideEffect markers, in
//     the same workflow task as the commands that follow from them.
//   - The conversation never enters the history again: Generate is given a
//     reference.
//
// Workers need [Interceptor] in their options, which is what keeps the order.
package workflows
