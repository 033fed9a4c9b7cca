package calico_test

import "testing"

// handwritten returns a form that nobody recorded: it was written by hand, after what is
// known of the versions.
func handwritten(name, group string, whole bool, want map[string]string) form {
	return form{name: name, alive: "hand", group: group, whole: whole, want: want}
}

// What Calico 3.20 to 3.26 may have stored gets the same verdicts as what later ones do,
// and so does what such a cluster still has of earlier versions. All of it is written by
// hand: no program of these versions made it.
func TestHandWrittenOlderFormsGetTheirVerdicts(t *testing.T) {
	same := func(group string) map[string]string {
		return verdicts(group, cast{
			"10.65.0.0", "10.65.0.1", "fd65::", "10.65.0.2", "10.65.0.3", "fd65::1", "10.65.0.4", "10.65.0.5", "10.65.0.6",
			"10.65.0.7", "10.65.0.8", "10.65.0.9", "10.65.0.10", "10.65.0.12", "10.65.0.14", "10.65.0.19", "10.65.0.47",
		})
	}
	earlier := map[string]string{
		// A handle <namespace>.<pod> of v2 names no owner.
		"no pod 10.65.0.0": "held OwnerUnknown kept",
		"no pod 10.65.0.1": "held OwnerUnknown kept",
		"a/live 10.65.0.2": "inUse PodPresent kept",
		// It names a pod, so a later sandbox of that pod has the same.
		"a/departed 10.65.0.11": "held NoToken kept",
		// A tunnel's, of before handles.
		"no pod 10.65.0.4": "held OwnerUnknown kept",
		// Without times, the pod's status proves which is later.
		"a/again 10.65.0.5": "suspected SandboxReplaced kept",
		"a/again 10.65.0.6": "inUse PodPresent kept",
		// Its handle has an interface behind it.
		"a/gone 10.65.0.7": "orphan PodAbsent released",
		// Its handle counts an address in a block that is gone.
		"a/gone 10.65.0.15":       "orphan PodAbsent released",
		"excluded/gone 10.65.0.9": "held OutOfScope kept",
		// A sandbox alone.
		"no pod 10.65.0.10": "held OwnerUnknown kept",
		"a/done 10.65.0.12": "held PodFinished kept",
		// Neither a number nor a handle tells it from the next one.
		"a/gone 10.65.0.13":  "held NoToken kept",
		"a/shown 10.65.0.14": "inUse AddressInUse kept",
		"a/away 10.65.0.19":  "held NodeUnreachable kept",
	}
	// 3.26 has a handle that counts too many, which a later run finds.
	proveAll(t,
		handwritten("hand-3.20-kubernetes", groupV1, true, same(groupV1)),
		handwritten("hand-3.26-kubernetes", groupV1, false, same(groupV1)),
		handwritten("hand-earlier-kubernetes", groupV1, false, earlier),
		handwritten("hand-3.20-etcdv3", "", true, same("")),
		handwritten("hand-3.26-etcdv3", "", false, same("")),
		handwritten("hand-earlier-etcdv3", "", false, earlier),
	)
}
