# Small scripts, each under its name: `show` prints its words, in a real shell and in the reader of scripts.
#### quotes
show a 'b c' "d e" f\ g "h\"i" 'j"k' $'l\tm' a"b"'c'$D
#### unset
A=; show $A "$A" x${A}y ${B:-d e} "${B:-d e}" ${C-f} "${A-g}" "${A:-h}" ${A:+i} ${X+j} end
#### assign default
: ${A:=3}; : "${B:=x y}"; show "$A" "$B" $B
#### splitting
A="  one   two  "; show $A "$A" x$A'y' $A$A
#### arrays
A=(a "b c" d); show ${A[@]} "${A[@]}" "${A[*]}" ${A[1]} "${A[1]}" ${#A[@]} $A "x${A[@]}y" ${#A[1]}
#### array growth
A=(1 2); A+=(3 "4 5"); A[7]=z; A[0]+=q; show "${A[@]}" ${#A[@]} "${!A[@]}" ${A[-1]}
#### array slices
A=(a b c d e); show "${A[@]:1:2}" "${A[@]:3}" "${A[@]: -2}" ; B=abcdef; show ${B:1:3} ${B:4} ${B: -2} ${B:0:-1}
#### maps
declare -A M=([a]=1 ["b c"]=2); M[d]=3; K=a; show "${M[a]}" "${M[$K]}" "${M[d]}" ${#M[@]}
#### comments
A=(1 # one
 2 # two
); show "${A[@]}" a#b # not this
#### arithmetic
A=7; B=2; show $((A*B+1)) $(( A / B )) $((-A / B)) $((A % B)) $((2**10)) $((A > B ? 10 : 20)) $(( (A+1) << 2 ))
#### more arithmetic
A=010; show $((A)) $((0x1F)) $((A+=2)) $A $((A++)) $A $((++A)) $((!A)) $((~1)) $((1,2)) $((A==12&&1||0))
#### arithmetic with dollars
A=3; B=(4 5); show $(($A*${B[1]})) $((${#B[@]})) $((B[0]+1)) $(( ${X:-6} / 2 ))
#### let
let A=3*4 "B = A + 1"; ((C = B * 2)); ((C++)); show $A $B $C
#### prefix and suffix
F=/a/b.c/file.tar.gz; show ${F##*/} ${F#*/} ${F%%.*} ${F%.*} ${F%/*} ${F#x}
#### replace
A=banana; show ${A/a/o} ${A//a/o} ${A/#b/c} ${A/%a/e} ${A//[an]/x} ${A/n*/y} ${A//a}
#### case of letters
A=Hello; show ${A^^} ${A,,} ${A^} ${A,} ${#A}
#### indirect
A=B; B="x y"; show ${!A} "${!A}"; P=2; set -- p q r; show ${!P}
#### substitution
A=$(echo one two); B="$(printf '%s-%s' a b)"; show $A "$A" $B `echo c` "$(echo 'd  e')" $(echo f; echo g)
#### nested
A=2; B=$(echo "$(( $(echo 3) * A ))"); show "$B" "$(echo "${A}x" | cat)"
#### sequences
show {1..4} $(seq 3) $(seq 2 4) $(expr 3 + 4) $(echo "6*7" | cat)
#### heredoc
A=5; T=$(cat <<EOF
 --x $A "q" 'r' \$A $((A+1))
  $(echo sub "s")
EOF
); show $T; show "$T"
#### heredoc first
A=5; T=$(cat <<EOF
  $A $A
$A
EOF
); show "x$T"
#### quoted heredoc
T=$(cat <<'E'
 $A "q" \x
E
); show "$T"
#### tabbed heredoc
T=$(cat <<-E
	a
		b
	E
); show "$T"
#### read
read A B <<< "1 2 3"; read -r -d '' C <<E
x y
z
E
show "$A" "$B" $C
#### mapfile
mapfile -t A <<E
a b
c
E
show "${A[@]}"
#### functions
f() { local a=$1; shift; B="$a:$*:$#"; C=3; }; a=9; f x y z; show "$B" $C $a
#### function output
f() { echo "$1-$2"; }; g() { f "$@" tail; }; show $(f a b) $(g q)
#### return
f() { if [ "$1" = a ]; then R=1; return; fi; R=2; }; f a; A=$R; f b; show $A $R
#### positional
set -- a "b c" d; show $# "$@" "$*" $2 "${2}" "${@:2}"; shift; show "$1" $#
#### no arguments
show "$@" a $* b$@
#### if
A=5; if [ $A -gt 3 ] && [[ -n $A ]]; then B=1; elif false; then B=2; else B=3; fi; show $B
#### tests
A="x y"; t() { "$@" && echo y || echo n; }; [[ $A == x* ]] && B=1; [ -z "$C" ] && C=2; [ "$A" != "x y" ] || D=3
[[ "$A" == "x*" ]] || E=4; [[ a < b ]] && F=5; [[ $A =~ ^x ]] && G=6; [ ! 1 -eq 2 ] && H=7; test -n "$A" && I=8; show $B $C $D $E $F $G $H $I
#### and or
true && A=1 || A=2; false && B=1 || B=2; false || { C=3; D=4; }; show $A $B $C $D
#### case
for x in abc a.b zz; do case $x in a?c) R=1;; *.*|y) R=2;; *) R=3;; esac; S="$S$R"; done; show $S
#### for
for x in 1 "2 3" $(echo 4 5); do A="$A<$x>"; done; show "$A" $x; set -- p q; for y; do B=$B$y; done; show $B
#### c style for
for ((i=0; i<5; i+=2)); do A=$A$i; done; show $A $i
#### while
n=3; while [ $n -gt 0 ]; do A=$A$n; n=$((n-1)); [ $n -eq 1 ] && break; done; until (( n >= 4 )); do ((n++)); done; show $A $n
#### continue
for x in 1 2 3; do [ $x = 2 ] && continue; A=$A$x; done; show $A
#### subshells
A=1; (A=2; B=3); { C=4; }; echo x | A=5; show $A "$B" $C
#### eval
A='B="x y"'; eval $A; eval "C=\$B"; show "$B" "$C"
#### export
export A=1 B="x y"; readonly C=3; declare D=4; local_="q"; declare -x E; show $A "$B" $C $D "$E"
#### unset variable
A=1; unset A; show "${A:-none}"
#### lines
show a \
  b \
  c
show d; show e
#### last line end
A=$(printf 'a\n\n'); show "$A"
#### written file
cat > /dev/null <<E
x
E
show ok
#### printf
show "$(printf '%s ' a b c)" "$(printf '%d%%' 5)"; printf -v A '%s/%s' x y; show $A
#### tr
show $(echo a,b,c | tr , ' ') "$(echo "x y" | tr -d ' ')"
#### xargs
show "$(printf 'a\nb\n' | xargs)"
#### not
! true || A=1; ! false && B=2; show "$A" $B
#### while read args
set -- --a 1 --b; while [[ $# -gt 0 ]]; do case $1 in --a) A=$2; shift 2;; *) B=$1; shift;; esac; done; show $A $B
#### break
for x in 1 2 3; do [ $x = 2 ] && break; A=$A$x; done; show $A $x
#### return from a loop
f() { for x in 1 2 3; do if [ $x = 2 ]; then return; fi; A=$A$x; done; A=all; }; f; show $A $x
#### exit
(exit 3); (A=1; exit); f() { echo a; exit; echo b; }; show "$(f)"; exit; show never
#### digits after a parameter
set -- a b; show $12 "$1s" ${12}x $2$1
#### tests that are negated
A=x; [[ ! $A =~ ^a ]] && B=1; [[ ! $A == x ]] || C=2; [ ! -n "" ] && D=3; ! [ a = b ] && E=4; show $B "$C" $D $E
#### quotes in defaults
show ${A:-"b c" d} ${A:-'e f'} "${A:-"g h"}" ${A:-i"j k"l}
