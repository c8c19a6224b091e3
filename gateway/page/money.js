// dollars formats millionths of a US dollar with at least two decimal places.
export const dollars = (micros) => `$${(micros / 1e6).toFixed(6).replace(/0{1,4}$/, "")}`;

// spending formats the budget of a status: "42 of 5,000 tokens · $0.02 of $2.50".
export function spending({ limit, used }) {
  const tokens = (n = 0) => n.toLocaleString("en");
  return [
    limit.tokens != null && `${tokens(used.tokens)} of ${tokens(limit.tokens)} tokens`,
    limit.costMicros != null && `${dollars(used.costMicros ?? 0)} of ${dollars(limit.costMicros)}`,
  ].filter(Boolean).join(" · ");
}
