package census

// An excess has the pods or the virtual machines that show more addresses than are read.
// An address that was not read may be that of any allocation that names a pod of the same
// namespace, or no pod. So a tenant cannot keep what names a pod of another namespace.
type excess struct {
	names []string          // of all
	first map[string]string // the first name of each namespace, and of all under ""
}

// add adds the name of a pod or a virtual machine.
func (e *excess) add(namespace, name string) {
	if e.first == nil {
		e.first = make(map[string]string)
	}
	e.names = append(e.names, name)
	for _, in := range []string{namespace, ""} {
		if first := e.first[in]; first == "" || name < first {
			e.first[in] = name
		}
	}
}
