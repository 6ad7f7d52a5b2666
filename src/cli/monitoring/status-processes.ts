import type { AnsweringVersion } from '../../runtime/versions/answering-versions.ts';
import { canaryText } from '../../runtime/versions/canary-steps.ts';
import type { LiveProcess } from '../../store/ownership/live-processes.ts';
import { textTable } from '../shared/text-table.ts';

/** Shows which version is served for each read model, and by which processes. Returns nothing if there are none. */
export function answersToText(answers: readonly AnsweringVersion[]): string[] {
  if (answers.length === 0) return [];
  const rows = answers.map(({ name, version, canary, processes }) => [
    name,
    version === null
      ? 'nothing'
      : `${name}@${version}${canary ? `, ${name}@${canary.version} for ${canaryText(canary)}` : ''}`,
    namesText(processes),
  ]);
  return ['', textTable(['read model', 'answered by', 'in'], rows)];
}

/** Shows the live processes. Returns nothing if there are none. */
export function processesToText(processes: readonly LiveProcess[]): string[] {
  if (processes.length === 0) return [];
  const rows = processes.map(({ name, role, versions }) => [name, role ?? '-', versions.join(', ') || '-']);
  return ['', textTable(['process', 'role', 'declares'], rows)];
}

// The table of processes and the JSON output show all of them.
const shownNames = 4;

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, shownNames).join(', ');
  return names.length > shownNames ? `${shown} and ${names.length - shownNames} more` : shown || '-';
}
