/**
 * `npm run house`: draws into docs/architecture.md which room of `src/` uses which, from the imports. With `--check` it fails if the picture
 * there differs. An arrow is left out if other arrows lead to the same room.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { roomOf } from '../test/house/floors.ts';
import { importedBy } from '../test/house/imports.ts';
import { rooms } from '../test/house/rooms.ts';

const page = 'docs/architecture.md';
const [begin, end] = ['<!-- rooms: drawn by npm run house -->', '<!-- end of rooms -->'];

const text = readFileSync(page, 'utf8');
const drawn = withPicture(text, picture(usesOfRooms('src')));
if (!process.argv.includes('--check')) writeFileSync(page, drawn);
else if (drawn !== text) {
  console.error(`The picture of the rooms in ${page} differs from the imports. Run: npm run house`);
  process.exitCode = 1;
}

type Uses = ReadonlyMap<string, ReadonlySet<string>>;

/** For each room, the rooms of its hall that its files import from. */
function usesOfRooms(root: string): Uses {
  const uses = new Map(Object.keys(rooms).map((room) => [room, new Set<string>()]));
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  for (const file of files.map((name) => name.replaceAll(sep, '/'))) {
    const room = roomOf(file);
    for (const target of importedBy(file, readFileSync(join(root, file), 'utf8'))) {
      const used = roomOf(target);
      if (room && used && used !== room && hallOf(used) === hallOf(room)) uses.get(room)?.add(used);
    }
  }
  return uses;
}

function picture(uses: Uses): string {
  const halls = [...new Set([...uses.keys()].map(hallOf))].toReversed();
  const pictures = halls.map((hall) => {
    const own = [...uses].filter(([room]) => hallOf(room) === hall);
    const arrows = own.flatMap(([room, used]) =>
      [...used].filter((one) => !isReached(uses, used, one)).map((one) => `    ${idOf(room)} --> ${idOf(one)}`),
    );
    return [
      '```mermaid',
      'flowchart TB',
      `  subgraph ${hall}`,
      ...own.map(([room]) => `    ${idOf(room)}["${room.slice(hall.length + 1)}"]`),
      ...arrows.toSorted(),
      '  end',
      '```',
    ].join('\n');
  });
  return pictures.join('\n\n');
}

/** Whether one of the other rooms leads to it. Then the arrow adds nothing. */
function isReached(uses: Uses, among: ReadonlySet<string>, room: string): boolean {
  const leads = (from: string): boolean => [...(uses.get(from) ?? [])].some((used) => used === room || leads(used));
  return [...among].some((other) => other !== room && leads(other));
}

function idOf(room: string): string {
  return room.replace('/', '_');
}

function hallOf(room: string): string {
  return room.split('/')[0] ?? room;
}

function withPicture(before: string, drawing: string): string {
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`Expected ${begin} and ${end} in ${page}.`);
  return `${before.slice(0, from + begin.length)}\n\n${drawing}\n\n${before.slice(to)}`;
}
