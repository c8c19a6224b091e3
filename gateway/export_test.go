package gateway

import (
	"maps"
	"slices"
)

// Routes are the patterns of what g serves.
func Routes(g *Gateway) []string { return slices.Collect(maps.Keys(g.routes())) }
