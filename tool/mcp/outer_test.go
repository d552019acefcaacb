package mcp

import "testing"

// No page of a server's metadata leads to an inner network.
func TestOuter(t *testing.T) {
	s := NewHTTP("tickets", "https://tickets.example.com/mcp", &Options{OAuth: &OAuth{}})
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	for addr, ok := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::]:443": true, "[::ffff:93.184.216.34]:443": true, "[64:ff9b::5db8:d822]:443": true,
		"127.0.0.1:443": false, "[::1]:443": false, "0.0.0.0:443": false, "0.1.2.3:443": false, "10.0.0.1:443": false, "192.168.1.1:443": false,
		"169.254.169.254:80": false, "[::ffff:169.254.169.254]:80": false, "[fd00:ec2::254]:80": false, "[fe80::1]:80": false, "255.255.255.255:80": false,
		"100.100.100.200:80": false, "192.0.0.192:80": false, "[64:ff9b::a9fe:a9fe]:80": false, "[2002:a9fe:a9fe::]:80": false, "[::169.254.169.254]:80": false, "[fec0::1]:80": false,
	} {
		if err := s.outer("tcp", addr, nil); (err == nil) != ok {
			t.Errorf("%s: got %v", addr, err)
		}
	}
}
