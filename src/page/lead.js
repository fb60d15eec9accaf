/* What the runs of a page were made for, where the library says it: a verdict, and parts that each have what they need of lines,
 * a table, a picture that the library drew, a text. */
"use strict";

/** Sentences and paths in a table are as wide as they need to be, and no wider. */
function leadCell(cell) {
    if (typeof cell === "object")
        return make("td", cell.text, cell.class);
    if (typeof cell !== "string" || cell.length < 20)
        return cell;
    return cell.includes(" ") ? cell.length > 48 ? make("td", cell, "text") : cell : make("td", cell, "path");
}

function showPart(section, part) {
    if (part.rows?.length)
        table(section, part.title, part.head, part.rows.map(row => row.map(leadCell)));
    else if (part.title)
        section.append(make("h2", part.title));
    for (const line of part.lines ?? [])
        section.append(make("p", line));
    for (const command of part.commands ?? [])
        section.append(make("pre", command, "command"));
    if (part.text)
        section.append(make("pre", part.text));
    if (part.picture) {
        const picture = make("img"); // not part of the page: whoever gave the file may have put script into it
        picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(part.picture);
        picture.alt = part.title ?? "curves";
        section.append(picture);
    }
}

/** What a page is of; undefined where it is of runs and no more. */
function showLead() {
    const element = document.getElementById("lead-data"), section = document.getElementById("lead");
    if (!element)
        return undefined;
    const lead = JSON.parse(element.textContent);
    section.append(make("p", lead.verdict, "verdict " + lead.mood));
    for (const line of lead.lines)
        section.append(make("p", line));
    for (const part of lead.parts)
        showPart(section, part);
    return lead.title;
}
