; Rooms joined by doors, with travel costs. Derived: what can be reached, by a recursive axiom, and what cannot.
(define (domain rooms)
  (:requirements :typing :derived-predicates :negative-preconditions :existential-preconditions :action-costs :equality)
  (:types place thing - object
          room corridor - place
          parcel door - thing)
  (:constants dock - room)
  (:predicates (door-between ?d - door ?a ?b - place) (open ?d - door) (robot-at ?p - place)
               (parcel-at ?q - parcel ?p - place) (loaded ?q - parcel)
               (passage ?a ?b - place) (reachable ?a ?b - place) (stranded ?q - parcel))
  (:functions (total-cost) - number
              (distance ?a ?b - place) - number)
  (:derived (passage ?a ?b)
    (exists (?d - door) (and (open ?d) (or (door-between ?d ?a ?b) (door-between ?d ?b ?a)))))
  (:derived (reachable ?a ?b - place) (= ?a ?b))
  (:derived (reachable ?a ?b - place)
    (exists (?m - place) (and (passage ?a ?m) (reachable ?m ?b))))
  (:derived (stranded ?q - parcel)
    (exists (?p ?r - place) (and (parcel-at ?q ?p) (robot-at ?r) (not (reachable ?r ?p)))))
  (:action drive
    :parameters (?a ?b - place)
    :precondition (and (robot-at ?a) (passage ?a ?b) (not (= ?a ?b)))
    :effect (and (robot-at ?b) (not (robot-at ?a)) (increase (total-cost) (distance ?a ?b))))
  (:action unlock
    :parameters (?d - door ?a ?b - place)
    :precondition (and (robot-at ?a) (door-between ?d ?a ?b) (not (open ?d)))
    :effect (and (open ?d) (increase (total-cost) 1.5)))
  (:action load
    :parameters (?q - parcel ?p - place)
    :precondition (and (robot-at ?p) (parcel-at ?q ?p) (not (exists (?o - parcel) (loaded ?o))))
    :effect (and (loaded ?q) (not (parcel-at ?q ?p)) (increase (total-cost) 1)))
  (:action unload
    :parameters (?q - parcel ?p - place)
    :precondition (and (robot-at ?p) (loaded ?q))
    :effect (and (parcel-at ?q ?p) (not (loaded ?q)) (increase (total-cost) 1))))
