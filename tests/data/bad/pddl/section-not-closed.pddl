(define (domain parcels)
  (:requirements :typing)
  (:types place parcel truck - object)
  (:constants depot - place
  (:predicates (at ?x - parcel ?p - place) (loaded ?x - parcel) (parked ?t - truck ?p - place))
  (:functions (total-cost) - number (distance ?p ?q - place) - number)
  (:action load
    :parameters (?x - parcel ?t - truck ?p - place)
    :precondition (and (at ?x ?p) (parked ?t ?p))
    :effect (and (loaded ?x) (not (at ?x ?p)))))
