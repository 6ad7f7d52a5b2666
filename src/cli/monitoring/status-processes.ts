import { textTable } from '../shared/text-table.ts';

export interface Answer {
  readonly projection: string;
  readonly version: string | null;
  readonly canary: string | null;
  readonly processes: readonly string[];
}

export interface Process {
  readonly name: string;
  readonly role: string | null;
  readonly versions: readonly string[];
}

/** Shows which version is served for each read model, and by which processes. Returns nothing if there are none. */
export function answersToText(answers: readonly Answer[]): string[] {
  if (answers.length === 0) return [];
  const rows = answers.map(({ projection, version, canary, processes }) => [
    projection,
    `${version ?? 'nothing'}${canary === null ? '' : `, ${canary} for some clients`}`,
    namesText(processes),
  ]);
  return ['', textTable(['read model', 'answered by', 'in'], rows)];
}

/** Shows the live processes. Returns nothing if there are none. */
export function processesToText(processes: readonly Process[]): string[] {
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
