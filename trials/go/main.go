// A peer of `lockstorm trial` with one of Go's lock libraries: peer LIBRARY.
//
// Each library is a type below: what it calls its keys, what it can do, and how it acquires, releases and extends a lock, with its own
// defaults where the trial does not say otherwise.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type lockInit struct {
	Lock  string   `json:"lock"`
	Name  string   `json:"name"`
	Nodes []string `json:"nodes"`
}

type request struct {
	ID        uint64     `json:"id"`
	Type      string     `json:"type"`
	Locks     []lockInit `json:"locks"`
	TimeoutMs *int64     `json:"timeout_ms"`
	Lock      string     `json:"lock"`
	LeaseMs   *int64     `json:"lease_ms"`
	Hold      uint64     `json:"hold"`
}

type message map[string]any

// What a library is asked; a nil hold is a refusal.
type library interface {
	hello() message
	open(nodes []redis.UniversalClient)
	acquire(name string, lease time.Duration) (hold, error)
}

type hold interface {
	granted() message
	release() error
	extend(lease time.Duration) (message, error)
}

// The library says that the lock is not held; nothing has changed.
type notHeld struct{ error }

var background = context.Background()

func millis(at time.Time) int64 { return at.UnixMilli() }

// redsync.

type redsyncLibrary struct{ sync *redsync.Redsync }

func (l *redsyncLibrary) hello() message {
	return message{"library": "redsync", "version": versionOf("github.com/go-redsync/redsync/v4"), "can": []string{"extend", "quorum"}}
}

func (l *redsyncLibrary) open(nodes []redis.UniversalClient) {
	var pools []syncredis.Pool
	for _, node := range nodes {
		pools = append(pools, goredis.NewPool(node))
	}
	l.sync = redsync.New(pools...)
}

type redsyncHold struct{ mutex *redsync.Mutex }

func (l *redsyncLibrary) acquire(name string, lease time.Duration) (hold, error) {
	mutex := l.sync.NewMutex(name, redsync.WithExpiry(lease))
	// TryLock asks once: lockstorm asks again.
	err := mutex.TryLock()
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &redsyncHold{mutex}, nil
}

func (h *redsyncHold) granted() message {
	return message{"owner": h.mutex.Value(), "until_ms": millis(h.mutex.Until())}
}

func (h *redsyncHold) release() error {
	released, err := h.mutex.Unlock()
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return notHeld{err}
	}
	if err == nil && !released {
		return errors.New("not released")
	}
	return err
}

func (h *redsyncHold) extend(time.Duration) (message, error) {
	extended, err := h.mutex.Extend()
	if err == nil && !extended {
		err = errors.New("not extended")
	}
	return message{"until_ms": millis(h.mutex.Until())}, err
}

// bsm/redislock.

type bsmLibrary struct {
	client *redislock.Client
	// It asks for the remaining time after each grant.
	asksTTL bool
}

func (l *bsmLibrary) hello() message {
	name := "bsm/redislock"
	if l.asksTTL {
		name += ", deadline by TTL()"
	}
	return message{"library": name, "version": versionOf("github.com/bsm/redislock"), "can": []string{"extend"}}
}

func (l *bsmLibrary) open(nodes []redis.UniversalClient) { l.client = redislock.New(nodes[0]) }

type bsmHold struct {
	lock    *redislock.Lock
	asksTTL bool
}

func (l *bsmLibrary) acquire(name string, lease time.Duration) (hold, error) {
	lock, err := l.client.Obtain(background, name, lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &bsmHold{lock, l.asksTTL}, nil
}

// until adds the deadline by TTL, which compares the token, counted from before it was asked for.
func (h *bsmHold) until(said message) message {
	if h.asksTTL {
		asked := time.Now()
		// No answer is no time that is left.
		left, _ := h.lock.TTL(background)
		said["until_ms"] = millis(asked.Add(left))
	}
	return said
}

func (h *bsmHold) granted() message { return h.until(message{"owner": h.lock.Token()}) }

func (h *bsmHold) release() error {
	err := h.lock.Release(background)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return notHeld{err}
	}
	return err
}

func (h *bsmHold) extend(lease time.Duration) (message, error) {
	err := h.lock.Refresh(background, lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, notHeld{err}
	}
	if err != nil {
		return message{}, err
	}
	return h.until(message{}), nil
}

// The conversation.

func versionOf(module string) string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version[1:]
			}
		}
	}
	return ""
}

type peer struct {
	library library
	mutex   sync.Mutex
	names   map[string]string
	holds   map[uint64]hold
}

func (p *peer) say(said message) {
	line, _ := json.Marshal(said)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Println(string(line))
}

func (p *peer) answer(asked request) (message, error) {
	switch asked.Type {
	case "init":
		for _, lock := range asked.Locks {
			p.names[lock.Lock] = lock.Name
			var nodes []redis.UniversalClient
			for _, node := range lock.Nodes {
				options := &redis.Options{Addr: node}
				if asked.TimeoutMs != nil {
					options.ReadTimeout = time.Duration(*asked.TimeoutMs) * time.Millisecond
				}
				client := redis.NewClient(options)
				if err := client.Ping(background).Err(); err != nil {
					return nil, err
				}
				nodes = append(nodes, client)
			}
			p.library.open(nodes)
		}
		return message{"type": "ready"}, nil
	case "acquire":
		held, err := p.library.acquire(p.names[asked.Lock], time.Duration(*asked.LeaseMs)*time.Millisecond)
		if err != nil {
			return nil, err
		}
		if held == nil {
			return message{"type": "refused"}, nil
		}
		p.mutex.Lock()
		p.holds[asked.ID] = held
		p.mutex.Unlock()
		said := held.granted()
		said["type"] = "granted"
		return said, nil
	}
	p.mutex.Lock()
	held := p.holds[asked.Hold]
	p.mutex.Unlock()
	switch asked.Type {
	case "release":
		return message{"type": "released"}, held.release()
	case "extend":
		said, err := held.extend(time.Duration(*asked.LeaseMs) * time.Millisecond)
		if err == nil {
			said["type"] = "extended"
		}
		return said, err
	}
	return nil, fmt.Errorf("no request of type %s", asked.Type)
}

func (p *peer) obey(asked request) {
	said, err := p.answer(asked)
	if err != nil {
		var none notHeld
		said = message{"type": "error", "text": err.Error(), "definite": errors.As(err, &none)}
	}
	said["id"] = asked.ID
	p.say(said)
}

func main() {
	libraries := map[string]library{"redsync": &redsyncLibrary{}, "bsm": &bsmLibrary{}, "bsm-ttl": &bsmLibrary{asksTTL: true}}
	if len(os.Args) != 2 || libraries[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: peer redsync|bsm|bsm-ttl")
		os.Exit(1)
	}
	p := &peer{library: libraries[os.Args[1]], names: map[string]string{}, holds: map[uint64]hold{}}
	hello := p.library.hello()
	hello["type"], hello["protocol"] = "hello", 1
	hello["driver"] = "go-redis " + versionOf("github.com/redis/go-redis/v9")
	p.say(hello)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go p.obey(asked)
	}
}
