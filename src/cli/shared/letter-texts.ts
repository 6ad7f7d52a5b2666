/** Says which rows have the unique values of a dead letter. */
export function takenByText(takenBy: readonly unknown[] | null | undefined): string {
  if (!takenBy || takenBy.length === 0) return '';
  return ` Now its unique values are those of ${takenBy.map((key) => JSON.stringify(key)).join(' and ')}.`;
}
