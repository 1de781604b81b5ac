// A peer with the lock of etcd's own client, go.etcd.io/etcd/client/v3/concurrency: a Mutex of a
// Session.
//
// The session's lease has the length that `init` names, and its client renews it. The key's
// revision is the fencing token. `Done` of the session is the report of a lost lock.
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

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

type request struct {
	ID         uint64 `json:"id"`
	Type       string `json:"type"`
	WatchdogMs int64  `json:"watchdog_ms"`
	TimeoutMs  *int64 `json:"timeout_ms"`
	WaitMs     *int64 `json:"wait_ms"`
	Hold       uint64 `json:"hold"`
	Locks      []struct {
		Name  string   `json:"name"`
		Nodes []string `json:"nodes"`
	} `json:"locks"`
}

type message map[string]any

// The limit of a request if the trial sets none: that of etcdctl (--command-timeout).
const commandTimeout = 5 * time.Second

type peer struct {
	out     sync.Mutex
	state   sync.Mutex
	client  *clientv3.Client
	session *concurrency.Session
	name    string
	ttl     int
	timeout time.Duration
	holds   map[uint64]*concurrency.Mutex
}

func (p *peer) say(said message) {
	line, _ := json.Marshal(said)
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Println(string(line))
}

func (p *peer) limit() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), p.timeout)
}

func (p *peer) open(asked request) error {
	lock := asked.Locks[0]
	p.name, p.timeout = lock.Name, commandTimeout
	if asked.TimeoutMs != nil {
		p.timeout = time.Duration(*asked.TimeoutMs) * time.Millisecond
	}
	// The TTL of a lease is a number of whole seconds.
	p.ttl = int((asked.WatchdogMs + 999) / 1000)
	// As etcdctl does by default, a ping after an interval without news; gRPC makes it no shorter than
	// 10 s.
	config := clientv3.Config{Endpoints: lock.Nodes, DialTimeout: commandTimeout, DialKeepAliveTime: 2 * time.Second,
		DialKeepAliveTimeout: 6 * time.Second, Logger: zap.NewNop()}
	client, err := clientv3.New(config)
	if err != nil {
		return err
	}
	p.client = client
	_, err = p.now()
	return err
}

// now returns the session, or a new one if it has ended.
func (p *peer) now() (*concurrency.Session, error) {
	p.state.Lock()
	defer p.state.Unlock()
	if p.session != nil {
		select {
		case <-p.session.Done():
		default:
			return p.session, nil
		}
	}
	ctx, cancel := p.limit()
	defer cancel()
	// The context of a session is that of its renewals as well. So the lease is granted within the
	// limit, and renewed without one.
	lease, err := p.client.Grant(ctx, int64(p.ttl))
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(p.client, concurrency.WithLease(lease.ID))
	if err == nil {
		p.session = session
	}
	return session, err
}

func (p *peer) acquire(asked request) (message, error) {
	session, err := p.now()
	if err != nil {
		return nil, err
	}
	mutex := concurrency.NewMutex(session, p.name)
	switch {
	case asked.WaitMs == nil:
		err = mutex.Lock(context.Background())
	case *asked.WaitMs == 0:
		ctx, cancel := p.limit()
		defer cancel()
		err = mutex.TryLock(ctx)
	default:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(*asked.WaitMs)*time.Millisecond)
		defer cancel()
		if err = mutex.Lock(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = concurrency.ErrLocked
		}
	}
	if errors.Is(err, concurrency.ErrLocked) {
		return message{"type": "refused"}, nil
	}
	if err != nil {
		return nil, err
	}
	p.state.Lock()
	p.holds[asked.ID] = mutex
	p.state.Unlock()
	go func() {
		<-session.Done()
		p.state.Lock()
		_, held := p.holds[asked.ID]
		p.state.Unlock()
		if held {
			p.say(message{"type": "lost", "hold": asked.ID})
		}
	}()
	return message{"type": "granted", "token": mutex.Header().Revision}, nil
}

func (p *peer) answer(asked request) (message, error) {
	switch asked.Type {
	case "init":
		return message{"type": "ready"}, p.open(asked)
	case "acquire":
		return p.acquire(asked)
	case "release":
		p.state.Lock()
		mutex := p.holds[asked.Hold]
		p.state.Unlock()
		ctx, cancel := p.limit()
		defer cancel()
		err := mutex.Unlock(ctx)
		if err == nil {
			p.state.Lock()
			delete(p.holds, asked.Hold)
			p.state.Unlock()
		}
		return message{"type": "released"}, err
	}
	return nil, fmt.Errorf("no request of type %s", asked.Type)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "go.etcd.io/etcd/client/v3" {
				return dep.Version[1:]
			}
		}
	}
	return ""
}

func main() {
	p := &peer{holds: map[uint64]*concurrency.Mutex{}}
	p.say(message{"type": "hello", "protocol": 1, "library": "etcd concurrency.Mutex", "version": version(),
		"can": []string{"wait", "watchdog", "token"}})
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			said, err := p.answer(asked)
			if err != nil {
				said = message{"type": "error", "text": err.Error(), "definite": false}
			}
			said["id"] = asked.ID
			p.say(said)
		}()
	}
}
