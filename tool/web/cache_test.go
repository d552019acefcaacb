package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is kept is asked for again as its server says, and shown as it was if it has not
// changed.
func TestPagesAreKept(t *testing.T) {
	header, asked := http.Header{}, []string{}
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("If-None-Match")+"|"+r.Header.Get("If-Modified-Since"))
		for key, values := range header {
			w.Header()[key] = values
		}
		if etag := header.Get("ETag"); etag != "" && r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprintf(w, "visit %d", len(asked))
	})
	const day = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, c := range []struct {
		name, header string
		after        time.Duration
		asked        []string // what the second call asks
		visit        int      // what it shows
	}{
		{"fresh", "Cache-Control: max-age=60", 59 * time.Second, nil, 1},
		{"stale", "Cache-Control: max-age=60", 61 * time.Second, []string{"|"}, 2},
		{"shared", "Cache-Control: max-age=0, s-maxage=60", 59 * time.Second, nil, 1},
		{"aged", "Cache-Control: max-age=60\nAge: 30", 31 * time.Second, []string{"|"}, 2},
		{"too long", "Cache-Control: max-age=99999999", 25 * time.Hour, []string{"|"}, 2},
		{"unchanged", "Cache-Control: max-age=60\nETag: \"a\"", 61 * time.Second, []string{`"a"|`}, 1},
		{"always asked", "Cache-Control: no-cache\nETag: \"a\"", 0, []string{`"a"|`}, 1},
		{"dated", "Cache-Control: no-cache\nLast-Modified: " + day, 0, []string{"|" + day}, 2},
		{"never kept", "Cache-Control: no-store\nETag: \"a\"", 0, []string{"|"}, 2},
		{"for one reader", "Cache-Control: private, max-age=60", 0, []string{"|"}, 2},
		{"varies", "Cache-Control: max-age=60\nVary: *", 0, []string{"|"}, 2},
		{"silent", "", 59 * time.Second, nil, 1},
		{"silent and late", "", 61 * time.Second, []string{"|"}, 2},
		{"expired", "Expires: 0", 61 * time.Second, []string{"|"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			header, asked = http.Header{}, nil
			for line := range strings.SplitSeq(c.header, "\n") {
				if key, value, ok := strings.Cut(line, ": "); ok {
					header.Set(key, value)
				}
			}
			f := outer(t, s, plain)
			now := time.Now()
			f.now = func() time.Time { return now }
			u := s.on("docs.example.com", "/")
			require.Contains(t, f.gets(t, u), "> visit 1")
			now = now.Add(c.after)
			require.Contains(t, f.gets(t, u), fmt.Sprintf("> visit %d", c.visit))
			require.Equal(t, strings.Join(c.asked, ","), strings.Join(asked[1:], ","))
			// An answer that it has not changed makes it fresh again.
			if c.name == "unchanged" {
				require.Contains(t, f.gets(t, u), "> visit 1")
				require.Len(t, asked, 2)
			}
			// Others see nothing of it.
			n := len(asked)
			require.Contains(t, outer(t, s, plain).gets(t, u), fmt.Sprintf("> visit %d", n+1))
		})
	}
}

// A redirect is asked for again soon, and the page's validators go to the page alone.
func TestRedirectsAreKeptBriefly(t *testing.T) {
	to := "/one"
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") == `"a"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, r.URL.Path)
	})
	f := outer(t, s, plain)
	now := time.Now()
	f.now = func() time.Time { return now }
	u := s.on("docs.example.com", "/")
	require.Contains(t, f.gets(t, u), "> /one")
	now = now.Add(2 * briefly)
	require.Contains(t, f.gets(t, u), "> /one")
	require.Empty(t, s.seen[2].Header.Get("If-None-Match"))
	require.Equal(t, `"a"`, s.seen[3].Header.Get("If-None-Match"))
	to, now = "/two", now.Add(2*briefly)
	require.Contains(t, f.gets(t, u), "> /two")
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	c := newCache()
	put := func(i, size int) {
		c.put(fmt.Sprint(i), &kept{page: &page{text: strings.Repeat("a", size)}})
	}
	sum := func() (n int) {
		for _, k := range c.pages.Values() {
			n += k.size()
		}
		return n
	}
	for i := range 100 {
		put(i, 2<<20)
		put(i, 1<<20)
		require.LessOrEqual(t, c.bytes, maxKept)
	}
	require.Equal(t, sum(), c.bytes)
	require.Nil(t, c.get("1"))
	require.NotNil(t, c.get("99"))
	put(1000, maxKept/8)
	require.Nil(t, c.get("1000"), "it would replace too many others")
	for i := range 2 * maxKeptPages {
		put(i, 1)
	}
	require.Equal(t, maxKeptPages, c.pages.Len())
	require.Equal(t, sum(), c.bytes)
	c.put("3999", nil)
	require.Nil(t, c.get("3999"))
	require.Equal(t, sum(), c.bytes)
}

// All that is kept of a page counts, and what a server makes long is not kept.
func TestAllThatIsKeptCounts(t *testing.T) {
	k := &kept{page: &page{}}
	empty := k.size()
	k = &kept{page: &page{url: "1", about: "22", text: "333", file: []byte("4444")}, etag: "55555", modified: "666666"}
	require.Equal(t, empty+21, k.size())

	long := strings.Repeat("a", maxValidator+1)
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", long)
		w.Header().Set("Last-Modified", long)
	})
	f := outer(t, s, plain)
	u := s.on("docs.example.com", "/")
	f.gets(t, u)
	require.Empty(t, f.cache.get(u).validators())
	require.NotNil(t, f.cache.get(u))
}
