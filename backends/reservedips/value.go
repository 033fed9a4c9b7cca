package reservedips

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Each error below completes a sentence that begins with the value.

// pieces splits a list of addresses at its commas. A list without any is an error.
func pieces(value any) ([]string, error) {
	if _, code := value.(uint8); code {
		return nil, errors.New("is the code of a character, not an address: the path has [*] after a text")
	}
	text, ok := value.(string)
	var all []string
	for piece := range strings.SplitSeq(text, ",") {
		if piece = strings.TrimSpace(piece); piece != "" {
			all = append(all, piece)
		}
	}
	if !ok || len(all) == 0 {
		return nil, errNoAddress
	}
	return all, nil
}

// errNoAddress is the error for what names no address.
var errNoAddress = errors.New("is not an address")

// readSpan parses an address, alone or with the length of its prefix as interfaces have it; a network;
// or a range from one address to another. 10.1.0.4/24 is an address, and 10.1.0.0/24 a network. It
// returns the form in which equal addresses compare equal.
func readSpan(text string) (ipam.Span, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return oneAddress(ip)
	}
	if prefix, err := netip.ParsePrefix(text); err == nil {
		network := prefix.Masked().Addr() == prefix.Addr() && !prefix.IsSingleIP()
		switch {
		case !network:
			return oneAddress(prefix.Addr())
		case prefix.Addr().Is4In6():
			return ipam.Span{}, errNoAddress
		}
		return ipam.SpanOf(prefix), nil
	}
	low, high, _ := strings.Cut(text, "-")
	first, err := netip.ParseAddr(strings.TrimSpace(low))
	last, err2 := netip.ParseAddr(strings.TrimSpace(high))
	span := ipam.Span{First: first.Unmap().WithZone(""), Last: last.Unmap().WithZone("")}
	if err != nil || err2 != nil || span.First.BitLen() != span.Last.BitLen() || span.Last.Less(span.First) {
		return ipam.Span{}, errNoAddress
	}
	return span, nil
}

// oneAddress returns a span of one address. netip takes any zone.
func oneAddress(ip netip.Addr) (ipam.Span, error) {
	if strings.ContainsAny(ip.Zone(), ",;| \t\n") {
		return ipam.Span{}, errNoAddress
	}
	ip = ip.Unmap().WithZone("")
	return ipam.Span{First: ip, Last: ip}, nil
}

// spread returns the addresses of a span; nil if there are more than most, or none.
func spread(s ipam.Span, most int) (all []netip.Addr) {
	for ip := s.First; ip.IsValid() && !s.Last.Less(ip); ip = ip.Next() {
		if len(all) == most {
			return nil
		}
		all = append(all, ip)
	}
	return all
}

// podText returns what names a pod as a text: an object with a name and a namespace as namespace/name.
func podText(pod any) (text string, ok bool) {
	fields, both := pod.(map[string]any)
	if !both {
		text, ok = pod.(string)
		return text, ok
	}
	text, ok = fields["name"].(string)
	if namespace, _ := fields["namespace"].(string); namespace != "" {
		text = namespace + "/" + text
	}
	return text, ok
}

// readPodRef parses the name of a pod, namespace/name, or an object with both. The namespace is the one in the name,
// or else named, or else the object's. named may be nil. If it differs from the one in the
// name, that is an error.
func readPodRef(pod, named any, object string) (ipam.PodRef, error) {
	text, ok := podText(pod)
	if !ok {
		return ipam.PodRef{}, errors.New("is not the name of a pod")
	}
	apart := object
	if named != nil {
		if apart, ok = named.(string); !ok {
			return ipam.PodRef{}, errors.New("has an invalid namespace")
		}
	}
	namespace, name, both := strings.Cut(text, "/")
	switch {
	case !both:
		namespace, name = apart, text
	case named != nil && namespace != apart:
		return ipam.PodRef{}, errors.New("names a namespace other than " + strconv.Quote(apart))
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return ipam.PodRef{}, errors.New("is neither a pod name nor namespace/name")
	}
	if namespace == "" {
		return ipam.PodRef{}, errNoNamespace
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return ipam.PodRef{}, errors.New("is in " + strconv.Quote(namespace) + ", which is not the name of a namespace")
	}
	return ipam.PodRef{Namespace: namespace, Name: name}, nil
}

// errNoNamespace is the error for a pod without a namespace.
var errNoNamespace = errors.New("has no namespace, nor has the object: set backends.reservedIPs.resources[].namespace")

// readTTL parses a duration with units, or a number of seconds. It returns nil,
// which means forever, if there is no value, and for "never" and "forever".
func readTTL(value any) (*time.Duration, error) {
	wrong := errors.New(`is not a time to live of at most 292 years: use a duration such as "24h", a number of seconds, or "never"`)
	var text string
	switch v := value.(type) {
	case nil:
		return nil, nil //nolint:nilnil // forever
	case int64:
		text = strconv.FormatInt(v, 10)
	case string:
		text = v
	}
	if lower := strings.ToLower(text); lower == "never" || lower == "forever" {
		return nil, nil //nolint:nilnil // forever
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		text += "s"
	}
	ttl, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, wrong
	case ttl < 0: // some programs take it to mean "forever", others "expired"
		return nil, errors.New("is negative")
	}
	return &ttl, nil
}

// readTime parses a time in RFC 3339. It returns the zero time if there is no
// value.
func readTime(value any) (time.Time, error) {
	if value == nil {
		return time.Time{}, nil
	}
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, errors.New("is not a time such as 2026-01-02T15:04:05Z")
	}
	return at, nil
}

// maxLoose is the most addresses that a malformed text protects. With more, one object could
// hold whole networks of other tenants.
const maxLoose = 256

// mayName returns the addresses that a malformed text may name: those of a small network, those
// from one address to another, several in one text, and IPv4 with leading zeros, which other
// programs accept. A network of more than maxLoose addresses may be an address with its
// network, so only that address counts.
func mayName(text string) []netip.Addr {
	var all []netip.Addr
	for _, piece := range strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(",;|", c) }) {
		span := looseSpan(piece)
		for ip := span.First; ip.IsValid() && !span.Last.Less(ip) && len(all) < maxLoose; ip = ip.Next() {
			all = append(all, ip)
		}
	}
	return all
}

// looseSpan returns the addresses that one piece of a text may name. The span is the zero Span if
// the piece names none.
func looseSpan(piece string) ipam.Span {
	if network, err := netip.ParsePrefix(piece); err == nil {
		span := ipam.SpanOf(network)
		if network.Addr().Is4In6() || spread(span, maxLoose) == nil {
			ip := network.Addr().Unmap()
			return ipam.Span{First: ip, Last: ip}
		}
		return span
	}
	low, high, isRange := strings.Cut(piece, "-")
	if !isRange {
		high = low
	}
	span := ipam.Span{First: looseAddress(low), Last: looseAddress(high)}
	if span.First.BitLen() != span.Last.BitLen() {
		return ipam.Span{}
	}
	return span
}

// looseAddress parses an address, ignoring its zone and leading zeros in IPv4. The result is
// invalid if the text is not an address.
func looseAddress(text string) netip.Addr {
	text, _, _ = strings.Cut(text, "%")
	ip, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return ip.Unmap()
}
