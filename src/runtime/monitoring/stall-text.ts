import type { Stall } from '../../store/log/horizon.ts';

/** Describes a session that holds back the horizon, and how to end it. */
export function stallText({ tag, pid, applicationName, role, clientAddress, seconds, state, query }: Stall): string {
  const from = [role ?? '?', ...(clientAddress === null ? [] : [`from ${clientAddress}`])].join(' ');
  const session = pid === null ? applicationName : `session ${pid} of '${applicationName}' (${from})`;
  const wayOut =
    pid === null
      ? 'Finish it with `commit prepared` or `rollback prepared`'
      : `If it does not end, \`select pg_terminate_backend(${pid})\` ends it: its append is rolled back`;
  return `The log can't be read past position ${tag}: ${session} has been appending for ${Math.ceil(seconds)} s, ${state}${query === null ? '' : `: ${query}`}. ${wayOut}.`;
}
