package gateway

import (
	"maps"
	"slices"
)

// Routes are the patterns of what g serves.
func Routes(g *Gateway) []string { return slices.Collect(maps.Keys(g.routes())) }

// Rooms is how many rooms are open.
func Rooms(g *Gateway) int {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	return len(g.rooms.open)
}
