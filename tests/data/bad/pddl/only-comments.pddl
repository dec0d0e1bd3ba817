; a domain
; was meant to stand here
