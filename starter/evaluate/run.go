package evaluate

import (
	"context"
	"sync"

	"github.com/seed-9ed7edd4/chronicle/client"
)

// Progress is how many of the answers there are.
type Progress struct{ Done, Failed, Total int }

// Ask evaluates a question. The id is that of [client.Context.Evaluate]. An error ends the run.
type Ask func(ctx context.Context, id string, q Question, v Variant) (client.Evaluated, error)

// Run requests the answers that the results lack, and stores them; those with an error are requested again. At most concurrency
// requests run at the same time. Progress is called at the start and after each answer, by one goroutine at a time.
func Run(ctx context.Context, questions []Question, results *Results, concurrency int, ask Ask, progress func(Progress)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := run{results: results, ask: ask, progress: progress, state: Progress{Total: 2 * len(questions)}}
	var jobs []job
	for _, q := range questions {
		for _, v := range []Variant{Baseline, Candidate} {
			if id := results.next(q, v); id != "" {
				jobs = append(jobs, job{id, q, v})
			}
		}
	}
	r.state.Done = r.state.Total - len(jobs)
	progress(r.state)
	queue := make(chan job)
	var all sync.WaitGroup
	for range min(concurrency, len(jobs)) {
		all.Go(func() {
			for j := range queue {
				if err := r.do(ctx, j); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < len(jobs) && ctx.Err() == nil; i++ {
		select {
		case queue <- jobs[i]:
		case <-ctx.Done():
		}
	}
	close(queue)
	all.Wait()
	return context.Cause(ctx)
}

type job struct {
	id string
	q  Question
	v  Variant
}

type run struct {
	results  *Results
	ask      Ask
	progress func(Progress)
	mu       sync.Mutex
	state    Progress
}

func (r *run) do(ctx context.Context, j job) error {
	result, err := r.ask(ctx, j.id, j.q, j.v)
	if err == nil {
		err = r.results.put(j.q, j.v, result)
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Done++
	if result.Error != "" {
		r.state.Failed++
	}
	r.progress(r.state)
	return nil
}
