// Package evaluate compares the recorded answers of contexts with those of other models or system prompts.
//
//	questions := evaluate.QuestionsOf("demo", log)
//	results, err := evaluate.Open("eval.jsonl", settings)
//	…
//	err = evaluate.Run(ctx, questions, results, 4, ask, progress)
//	report := evaluate.NewReport(settings, evaluate.Words, questions, results)
//	err = report.WriteHTML(file)
//
// Each recorded answer is a question of its own: the conversation before it is the recorded one, whatever an evaluated model
// answered to earlier questions. Each question has two [Variant]s: the recorded configuration, and the candidate. How
// much the first one differs from the record shows what part of a difference is chance.
package evaluate
