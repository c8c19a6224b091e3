package gateway

import (
	"maps"
	"slices"
)

func Routes(g *Gateway) []string { return slices.Collect(maps.Keys(g.routes())) }

func Rooms(g *Gateway) int {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	return len(g.rooms.open)
}
