const answer = await fetch("/v2/admin/access");
document.getElementById("main").textContent = await answer.text();
