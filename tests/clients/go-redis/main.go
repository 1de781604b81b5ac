// Command suite is go-redis in both protocols: pipelines, transactions, scripts, functions, blocking, pub/sub, streams,
// scanning, users, and client-side caching by CLIENT TRACKING with redirection.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func address() string { return net.JoinHostPort(os.Getenv("REDIS_HOST"), os.Getenv("REDIS_PORT")) }

func connect(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address(), Protocol: protocol, MaxRetries: -1})
}

type suite struct {
	protocol int
	redis    *redis.Client
}

func (s suite) say(what string, value any) {
	fmt.Printf("resp%d %s: %+v\n", s.protocol, what, value)
}

// tell says what a command returned, or how it failed.
func tell[T any](s suite, what string, cmd interface{ Result() (T, error) }) {
	value, err := cmd.Result()
	if err != nil {
		s.say(what, fmt.Sprintf("error: %v", err))
		return
	}
	s.say(what, value)
}

func (s suite) do(args ...any) {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = fmt.Sprint(arg)
	}
	tell(s, strings.Join(words, " "), s.redis.Do(ctx, args...))
}

func (s suite) until(holds func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			panic("what was waited for did not come")
		}
	}
}

func (s suite) blocked(n int) {
	s.until(func() bool {
		return strings.Contains(s.redis.Info(ctx, "clients").Val(), fmt.Sprintf("blocked_clients:%d\r", n))
	})
}

func (s suite) values() {
	r := s.redis
	tell(s, "ping", r.Ping(ctx))
	tell(s, "set", r.Set(ctx, "s", "ä", time.Minute))
	tell(s, "set nx", r.SetNX(ctx, "s", "x", 0))
	tell(s, "get", r.Get(ctx, "s"))
	// Whole seconds, of which a busy machine may lose some.
	left := r.TTL(ctx, "s").Val()
	s.say("ttl", left > 40*time.Second && left <= time.Minute)
	tell(s, "none", r.Get(ctx, "none"))
	tell(s, "incr", r.Incr(ctx, "s"))
	tell(s, "incrbyfloat", r.IncrByFloat(ctx, "f", 3.0e3))
	tell(s, "hset", r.HSet(ctx, "h", "f", 1, "g", "zwei"))
	tell(s, "hgetall", r.HGetAll(ctx, "h"))
	tell(s, "rpush", r.RPush(ctx, "l", 1, 2, 3, 4, 5))
	tell(s, "lrange", r.LRange(ctx, "l", -3, -1))
	tell(s, "lpos", r.LPos(ctx, "l", "4", redis.LPosArgs{}))
	tell(s, "sadd", r.SAdd(ctx, "set", "a", "b", "c"))
	tell(s, "smismember", r.SMIsMember(ctx, "set", "a", "z"))
	tell(s, "zadd", r.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 2, Member: "b"}))
	tell(s, "zadd gt", r.ZAddArgs(ctx, "z", redis.ZAddArgs{GT: true, Ch: true, Members: []redis.Z{{Score: 9, Member: "a"}}}))
	tell(s, "zrange", r.ZRangeWithScores(ctx, "z", 0, -1))
	tell(s, "zrangestore", r.ZRangeStore(ctx, "zz", redis.ZRangeArgs{Key: "z", Start: 0, Stop: 0}))
	tell(s, "zpopmax", r.ZPopMax(ctx, "z", 5))
	tell(s, "setbit", r.SetBit(ctx, "bits", 9, 1))
	tell(s, "bitcount", r.BitCount(ctx, "bits", &redis.BitCount{Start: 0, End: 8, Unit: "BIT"}))
	tell(s, "bitfield", r.BitField(ctx, "bits", "OVERFLOW", "FAIL", "INCRBY", "u2", 0, 5, "GET", "u16", 0))
	tell(s, "pfadd", r.PFAdd(ctx, "p1", "a", "b"))
	tell(s, "pfadd", r.PFAdd(ctx, "p2", "b", "c"))
	tell(s, "pfcount", r.PFCount(ctx, "p1", "p2"))
	tell(s, "geoadd", r.GeoAdd(ctx, "g", &redis.GeoLocation{Name: "Palermo", Longitude: 13.361389, Latitude: 38.115556}))
	tell(s, "geosearch", r.GeoSearchLocation(ctx, "g", &redis.GeoSearchLocationQuery{
		GeoSearchQuery: redis.GeoSearchQuery{Longitude: 15, Latitude: 37, BoxWidth: 800, BoxHeight: 800, BoxUnit: "km"},
		WithDist:       true, WithHash: true, WithCoord: true,
	}))
	tell(s, "sort", r.Sort(ctx, "l", &redis.Sort{Order: "DESC", Count: 2}))
	tell(s, "object", r.ObjectEncoding(ctx, "l"))
	dumped, err := r.Dump(ctx, "l").Result()
	s.say("dump", err)
	tell(s, "restore", r.RestoreReplace(ctx, "l2", time.Hour, dumped))
	tell(s, "restored", r.LRange(ctx, "l2", 0, -1))
	tell(s, "restore", r.Restore(ctx, "l3", 0, "nonsense"))
	s.do("COPY", "l", "l4")
	s.do("EXPIRE", "l", 100, "GT")
	s.do("SET", "a")
	s.do("CONFIG", "SET", "nosuch", "1")
	s.do("OBJECT", "FREQ", "l")
	s.do("XADD", "s", "*", "a", "b")
	s.do("ZADD", "z", "nan", "m")
	s.do("SINTERCARD", 0, "set")
	s.do("LMPOP", 1, "l", "SIDEWAYS")
}

func (s suite) together() {
	r, other := s.redis, connect(s.protocol)
	defer other.Close()
	replies, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "a", 1, 0)
		p.Incr(ctx, "a")
		p.LPush(ctx, "a", 1)
		p.Get(ctx, "a")
		return nil
	})
	for _, reply := range replies {
		s.say("pipeline", reply)
	}
	s.say("pipeline", err)
	replies, err = r.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "a")
		p.HSet(ctx, "a", "f", "v")
		return nil
	})
	for _, reply := range replies {
		s.say("multi", reply)
	}
	s.say("multi", err)
	watch := func(between func()) error {
		return r.Watch(ctx, func(tx *redis.Tx) error {
			between()
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "a"); return nil })
			return err
		}, "a")
	}
	s.say("watched and changed", watch(func() { other.Set(ctx, "a", 7, 0) }))
	s.say("watched", watch(func() {}))
}

func (s suite) scripts() {
	r := s.redis
	script := redis.NewScript("return {KEYS[1], ARGV[1], redis.call('INCR', KEYS[1]), 3.7, false}")
	tell(s, "script", script.Run(ctx, r, []string{"n"}, "x"))
	tell(s, "flush", r.ScriptFlush(ctx))
	s.say("noscript", r.EvalSha(ctx, script.Hash(), []string{"n"}, "x").Err())
	tell(s, "again", script.Run(ctx, r, []string{"n"}, "x"))
	tell(s, "write in a read-only one", r.EvalRO(ctx, "return redis.call('DEL', KEYS[1])", []string{"n"}))
	tell(s, "syntax", r.Eval(ctx, "return (", nil))
	tell(s, "global", r.Eval(ctx, "x = 1", nil))
	tell(s, "load", r.FunctionLoad(ctx, "#!lua name=lib\nredis.register_function('f', function(k, a) return #k + #a end)"))
	tell(s, "fcall", r.FCall(ctx, "f", []string{"k"}, 1, 2))
	tell(s, "list", r.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "l*"}))
	payload, err := r.FunctionDump(ctx).Result()
	s.say("dump", err)
	tell(s, "flush", r.FunctionFlush(ctx))
	tell(s, "restore", r.FunctionRestore(ctx, payload))
	tell(s, "fcall", r.FCall(ctx, "f", []string{"k"}, 1, 2))
	tell(s, "delete", r.FunctionDelete(ctx, "lib"))
}

func (s suite) waiting() {
	r := s.redis
	got := make(chan string)
	for n, who := range []string{"first", "second"} {
		go func() {
			client := connect(s.protocol)
			defer client.Close()
			got <- fmt.Sprint(who, client.BLMPop(ctx, 0, "left", 1, "q1", "q2"))
		}()
		s.blocked(n + 1)
	}
	r.RPush(ctx, "q2", "x", "y")
	both := []string{<-got, <-got}
	sort.Strings(both)
	s.say("handed", both)
	tell(s, "nothing comes", r.BLPop(ctx, time.Second, "none"))
	go func() {
		client := connect(s.protocol)
		defer client.Close()
		got <- fmt.Sprint(client.BZPopMin(ctx, 0, "zq"))
	}()
	s.blocked(1)
	r.ZAdd(ctx, "zq", redis.Z{Score: 3, Member: "m"})
	s.say("handed", <-got)
}

func (s suite) listening() {
	r := s.redis
	p := r.Subscribe(ctx, "news")
	defer p.Close()
	receive := func() {
		message, err := p.ReceiveTimeout(ctx, 20*time.Second)
		s.say("received", fmt.Sprintf("%v %v", message, err))
	}
	receive()
	s.say("psubscribe", p.PSubscribe(ctx, "n*"))
	receive()
	tell(s, "publish", r.Publish(ctx, "news", "hello"))
	receive()
	receive()
	s.say("ping", p.Ping(ctx, "are you there"))
	receive()
	tell(s, "numsub", r.PubSubNumSub(ctx, "news"))
	shard := r.SSubscribe(ctx, "shard")
	defer shard.Close()
	message, err := shard.ReceiveTimeout(ctx, 20*time.Second)
	s.say("shard", fmt.Sprintf("%v %v", message, err))
	tell(s, "spublish", r.SPublish(ctx, "shard", "hello"))
}

func (s suite) streams() {
	r := s.redis
	for i := 1; i <= 4; i++ {
		tell(s, "xadd", r.XAdd(ctx, &redis.XAddArgs{Stream: "x", ID: fmt.Sprintf("%d-1", i), Values: []any{"n", i}}))
	}
	tell(s, "xadd trims", r.XAdd(ctx, &redis.XAddArgs{Stream: "x", ID: "5-*", MaxLen: 4, Values: []any{"n", 5}}))
	tell(s, "group", r.XGroupCreateMkStream(ctx, "x", "g", "0"))
	tell(s, "busy group", r.XGroupCreateMkStream(ctx, "x", "g", "0"))
	read := func(who string, block time.Duration) *redis.XStreamSliceCmd {
		return r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: who, Streams: []string{"x", ">"}, Count: 2, Block: block})
	}
	for _, who := range []string{"alice", "bob"} {
		streams, err := read(who, -1).Result()
		s.say("read", fmt.Sprintf("%v %v", messages(streams), err))
	}
	tell(s, "nothing new", read("bob", 5*time.Millisecond))
	tell(s, "ack", r.XAck(ctx, "x", "g", "2-1"))
	tell(s, "pending", r.XPending(ctx, "x", "g"))
	tell(s, "claim", r.XClaimJustID(ctx, &redis.XClaimArgs{Stream: "x", Group: "g", Consumer: "carol", Messages: []string{"3-1"}}))
	ids, start, err := r.XAutoClaimJustID(ctx, &redis.XAutoClaimArgs{Stream: "x", Group: "g", Consumer: "carol", Start: "0", Count: 1}).Result()
	s.say("autoclaim", fmt.Sprintf("%v %v %v", ids, start, err))
	tell(s, "groups", r.XInfoGroups(ctx, "x"))
	full := r.XInfoStreamFull(ctx, "x", 1)
	s.say("full", fmt.Sprintf("%v %d entries, %d groups %v", full.Val().Length, len(full.Val().Entries), len(full.Val().Groups), full.Err()))
	tell(s, "trim", r.XTrimMinID(ctx, "x", "4"))
	tell(s, "revrange", r.XRevRangeN(ctx, "x", "+", "-", 1))
}

func messages(streams []redis.XStream) (all []string) {
	for _, stream := range streams {
		for _, message := range stream.Messages {
			all = append(all, fmt.Sprint(message.ID, message.Values))
		}
	}
	return all
}

func (s suite) scanning() {
	r := s.redis
	for i := range 1000 {
		r.SAdd(ctx, "big", i)
	}
	found := map[string]bool{}
	for each := r.SScan(ctx, "big", 0, "*7*", 50).Iterator(); each.Next(ctx); {
		found[each.Val()] = true
	}
	s.say("sscan", len(found))
}

func (s suite) users() {
	r := s.redis
	tell(s, "setuser", r.ACLSetUser(ctx, "eve", "on", ">secret", "%R~e:*", "+@all", "-@dangerous", "(%W~f:* +set)"))
	eve := redis.NewClient(&redis.Options{Addr: address(), Protocol: s.protocol, Username: "eve", Password: "secret", MaxRetries: -1})
	defer eve.Close()
	tell(s, "read", eve.Get(ctx, "e:1"))
	tell(s, "write", eve.Set(ctx, "e:1", 1, 0))
	tell(s, "selector", eve.Set(ctx, "f:1", 1, 0))
	tell(s, "dangerous", eve.FlushAll(ctx))
	tell(s, "dryrun", r.ACLDryRun(ctx, "eve", "set", "e:1", "x"))
	entries, err := r.ACLLog(ctx, 1).Result()
	if err == nil && len(entries) > 0 {
		s.say("log", fmt.Sprint(entries[0].Reason, entries[0].Context, entries[0].Object, entries[0].Username))
	}
	s.say("log", err)
	stranger := redis.NewClient(&redis.Options{Addr: address(), Protocol: s.protocol, Username: "eve", Password: "no", MaxRetries: -1})
	defer stranger.Close()
	s.say("wrong password", strings.TrimSpace(fmt.Sprint(stranger.Ping(ctx).Err())))
	tell(s, "deluser", r.ACLDelUser(ctx, "eve"))
}

// tracking is for RESP2: there a second connection must receive the invalidations, as messages of a channel.
func (s suite) tracking() {
	if s.protocol != 2 {
		return
	}
	r, other := s.redis, connect(s.protocol)
	defer other.Close()
	listener := other.Conn()
	defer listener.Close()
	id := listener.ClientID(ctx).Val()
	p := other.Subscribe(ctx, "__redis__:invalidate")
	defer p.Close()
	if _, err := p.ReceiveTimeout(ctx, 20*time.Second); err != nil {
		s.say("subscribe", err)
	}
	// The subscription has a connection of its own, the newest one that the server knows.
	for _, line := range strings.Split(r.ClientList(ctx).Val(), "\n") {
		if strings.Contains(line, " sub=1 ") {
			fmt.Sscanf(line, "id=%d", &id)
		}
	}
	conn := r.Conn()
	defer conn.Close()
	s.say("tracking", conn.Do(ctx, "CLIENT", "TRACKING", "ON", "REDIRECT", id).Val())
	s.say("cached", conn.Get(ctx, "cached").Err())
	r.Set(ctx, "cached", "changed", 0)
	message, err := p.ReceiveTimeout(ctx, 20*time.Second)
	s.say("invalidated", fmt.Sprintf("%v %v", message, err))
	s.say("off", conn.Do(ctx, "CLIENT", "TRACKING", "OFF").Val())
}

func main() {
	for _, protocol := range []int{2, 3} {
		s := suite{protocol, connect(protocol)}
		for _, part := range []func(){
			s.values, s.together, s.scripts, s.waiting, s.listening, s.streams, s.scanning, s.users, s.tracking,
		} {
			if err := s.redis.FlushAll(ctx).Err(); err != nil && !errors.Is(err, redis.Nil) {
				panic(err)
			}
			part()
		}
		s.redis.Close()
	}
	fmt.Println("done")
}
