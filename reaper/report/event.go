package report

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An Event is what events of the API server say of why a pod waits. Anyone who may create events in the
// namespace may have written it: no verdict, no order and no command rests on it.
type Event struct {
	Reason string    `json:"reason"` // such as FailedCreatePodSandBox
	Says   string    `json:"says"`   // the error of the plugin; the whole message if it has none
	Since  time.Time `json:"since"`  // the first one that the API server still has
	Last   time.Time `json:"last"`
	Count  int32     `json:"count"`
}

// Before the error of the plugin, a message names what called it: the kubelet, the container runtime, and
// Multus, which calls other plugins.
var beforePlugin = regexp.MustCompile(`(?s)^.*(?:failed to setup network for sandbox "[^"]*": |cni failed to set up pod "[^"]*" network: |failed \(add\): |error adding container to network "[^"]*": |networking: |[dD]elegate ?[aA]dd(?: - "[^"]*")?: |AddNetwork: )`)

// What follows the error of the plugin: its configuration, as Multus prints it, and the end of a sandbox.
var afterPlugin = []string{"\n'", `\n'`, ": StdinData:", " StdinData:", " / bytes: ", ", failed to clean up sandbox container"}

// PluginSays returns the error of the plugin in the message of an event.
func PluginSays(message string) string {
	says := strings.TrimPrefix(message, "(combined from similar events): ")
	says = says[len(beforePlugin.FindString(says)):]
	for _, end := range afterPlugin {
		says, _, _ = strings.Cut(says, end)
	}
	return strings.TrimSpace(says)
}

var (
	rangeInEvent      = regexp.MustCompile(`[0-9a-fA-F.:]+/[0-9]+`)
	endsInEvent       = regexp.MustCompile(`(?:range set|ip): ([0-9a-fA-F.:]+)(?:-| / - )([0-9a-fA-F.:]+)`)
	attachmentInEvent = regexp.MustCompile(`network-attachment-definition \(([^)]*)\) in namespace \(([^)]*)\)`)
)

// names reports whether an event names the network: its range, the first and the last address of a part of that, an
// attachment of it, or an IPPool in quotes. A bare name proves nothing, nor does what Whereabouts was told to exclude.
func (e Event) names(n NetworkReport) bool {
	prefix, _ := netip.ParsePrefix(n.Range) // not valid if it is not known
	says, _, _ := strings.Cut(e.Says, "excludeRanges:")
	for _, text := range rangeInEvent.FindAllString(says, -1) {
		if named, err := netip.ParsePrefix(text); err == nil && named.Masked() == prefix {
			return true
		}
	}
	for _, ends := range endsInEvent.FindAllStringSubmatch(says, -1) {
		first, _ := netip.ParseAddr(ends[1]) // not valid if it is none
		last, _ := netip.ParseAddr(ends[2])
		if prefix.Contains(first) && prefix.Contains(last) {
			return true
		}
	}
	for _, of := range attachmentInEvent.FindAllStringSubmatch(says, -1) {
		if slices.Contains(n.Attachments, of[2]+"/"+of[1]) {
			return true
		}
	}
	return n.Default && strings.Contains(says, `"`+n.Name+`"`)
}
