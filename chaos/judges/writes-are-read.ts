import type { Answer } from '../clients/told.ts';
import type { Evidence, Judge } from './judge.ts';

/** Read-your-writes: through any gateway, with the token of any client. */
export const writesAreRead: Judge = {
  name: 'writes-are-read',
  promise: 'a read that demands the position of a write returns the write, or the error HISTORY_CHANGED',
  async differences(evidence) {
    const { answers, ledger, events } = evidence;
    const inLog = new Set(events.map(({ payload }) => (payload as { readonly append: number }).append)); // each has its mark
    return answers.flatMap((answer) => {
      const { asked, response, askedAt } = answer;
      if (asked.kind !== 'written row') return [];
      const where = `${answer.client} read append ${asked.append} (${ledger.entries[asked.append]?.parts[0]?.streamId}) at ${answer.demanded?.text}`;
      // If an append is lost while a client waits for it, POSITION_TIMEOUT is a correct response.
      const wasCut = ledger.cuts.some(({ to }) => askedAt > to && answer.demanded && answer.demanded.toldAt <= to);
      if (response.codes.includes('POSITION_TIMEOUT') && wasCut && !inLog.has(asked.append))
        return [`${where}, and timed out waiting for a lost position`];
      const { codes } = response;
      if (codes.includes('HISTORY_CHANGED')) return falseAlarm(answer, evidence, inLog.has(asked.append), where);
      if (codes.length > 0) return [];
      const row = response.data?.journal as { readonly append: number } | null | undefined; // as selected
      if (row?.append === asked.append) return [];
      const found = `and found ${row ? `append ${row.append}` : 'nothing'}`;
      if (inLog.has(asked.append)) return [`${where}, ${found}`];
      // During the cut, responses may still come from either history.
      return ledger.cuts.every(({ to }) => askedAt > to)
        ? [`${where}, ${found}; the append was lost, but the response has no HISTORY_CHANGED`]
        : [];
    });
  },
};

function falseAlarm({ demanded }: Answer, { ledger }: Evidence, isInLog: boolean, where: string): readonly string[] {
  if (!isInLog) return [];
  const cut = ledger.cuts.some(({ to }) => demanded !== undefined && demanded.toldAt <= to);
  return cut ? [] : [`${where}, and got HISTORY_CHANGED, but no tail was lost`];
}
