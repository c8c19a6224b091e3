package gateway

// recent buffers the frames of the newest events of a log.
type recent struct {
	first  int // counter of the first frame
	frames [][]byte
	bytes  int
}

// Viewers that are further behind read the log.
const (
	recentEvents = 256
	recentBytes  = 4 << 20
)

func (n *recent) add(counter int, frame []byte) {
	if counter != n.first+len(n.frames) {
		*n = recent{first: counter} // without an archive, a log may begin at any event
	}
	n.frames = append(n.frames, frame)
	n.bytes += len(frame)
	for len(n.frames) > 1 && (len(n.frames) > recentEvents || n.bytes > recentBytes) {
		n.bytes -= len(n.frames[0])
		n.frames[0] = nil
		n.frames = n.frames[1:]
		n.first++
	}
}

// since requires a counter in the buffer or directly before it.
func (n *recent) since(counter int) [][]byte { return n.frames[counter+1-n.first:] }
