// Billing lets an agent and a flow call what a Temporal user already has: an activity that
// charges a card, and a workflow that ships an order.
package billing
