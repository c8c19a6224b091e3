package gateway

func Rooms(g *Gateway) int {
	g.rooms.mu.Lock()
	defer g.rooms.mu.Unlock()
	return len(g.rooms.open)
}
