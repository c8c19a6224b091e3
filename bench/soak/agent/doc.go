// Package agent is a worker with the tools, hooks and budgets of the soak test. [Executions] records
// the calls of its tools and the events that its hook receives, outside of the workers, which are
// killed.
package agent
