package exchange

import "github.com/seed-9ed7edd4/chronicle/event"

// PlaceAfter places an event behind a number of others.
func PlaceAfter(count int, e event.Event) error {
	p := placing{to: "demo", count: count, others: map[string]int{}}
	_, err := p.place(e)
	return err
}
