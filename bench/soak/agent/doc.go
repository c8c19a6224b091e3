// Package agent is a worker with the tools, hooks and budgets of the soak test. [Executions] counts
// the calls of its tools, outside of the workers, which are killed.
package agent
