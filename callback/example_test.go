package callback_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/callback"
	"github.com/fermata-agents/fermata/client"
)

// A program takes the webhooks of a shop, which signs them. The listener is for a proxy that ends
// TLS.
func Example() {
	server, err := temporal.DialContext(context.Background(), temporal.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	shop, err := callback.Signed("shop", os.Getenv("SHOP_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	h, err := callback.New(client.New(server, nil), &callback.Options{Authenticate: shop, Hosts: []string{"hooks.example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(callback.Prefix, h)
	s := &http.Server{Addr: "127.0.0.1:7280", Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(s.ListenAndServe())
}

// A tool that orders something tells the shop where to call when it is paid. Then its model waits
// for the topic.
func ExampleAddress_URL() {
	address := callback.Address{Session: "invoice-118", Run: "01a1c2d3", Topic: "orders.paid"}
	fmt.Println(address.URL("https://hooks.example.com"))
	// Output: https://hooks.example.com/callback/invoice-118?run=01a1c2d3&topic=orders.paid
}

// Whoever has a certificate of the company's authority may call. The server's TLS settings have
// ClientAuth: tls.RequireAndVerifyClientCert.
func ExampleAuthenticate() {
	var mutual callback.Authenticate = func(r *http.Request, _ func() ([]byte, error)) (string, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return "", errors.New("no certificate")
		}
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	}
	_, err := callback.New(client.New(nil, nil), &callback.Options{Authenticate: mutual, Hosts: []string{"hooks.internal:7280"}})
	fmt.Println(err)
	// Output: <nil>
}
