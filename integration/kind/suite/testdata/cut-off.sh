# Cuts a node off from every other: nothing comes in, nothing goes out, all goes on.
nft -f - <<'RULES'
table inet cut_off {
	chain in { type filter hook input priority -300; policy accept; iifname "eth0" drop; }
	chain out { type filter hook output priority -300; policy accept; oifname "eth0" drop; }
	chain through { type filter hook forward priority -300; policy accept; iifname "eth0" drop; oifname "eth0" drop; }
}
RULES
