package gateway

func Rooms(g *Gateway) int {
	t, _ := g.tenants.of("") // a valid name
	t.rooms.mu.Lock()
	defer t.rooms.mu.Unlock()
	return len(t.rooms.open)
}
