import type { AnsweringVersion } from '../runtime/versions/answering-versions.ts';
import { canaryText } from '../runtime/versions/canary-steps.ts';
import type { LiveProcess } from '../store/ownership/live-processes.ts';
import { textTable } from './text-table.ts';

/** Which version answers for each read model, and where. Empty where there is none. */
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

/** The processes that live. Empty where there is none. */
export function processesToText(processes: readonly LiveProcess[]): string[] {
  if (processes.length === 0) return [];
  const rows = processes.map(({ name, role, versions }) => [name, role ?? '-', versions.join(', ') || '-']);
  return ['', textTable(['process', 'role', 'declares'], rows)];
}

// All of them are in the table of processes below, and in JSON.
const shownNames = 4;

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, shownNames).join(', ');
  return names.length > shownNames ? `${shown} and ${names.length - shownNames} more` : shown || '-';
}
